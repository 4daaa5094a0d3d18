"""Reading of HDF5 files from strangers in a process of its own, with limits on its memory and its time.

The HDF5 library is not safe against files that are made to do harm: it can crash, run without end and fill the memory.
So `process.ask` starts a process that reads such a file and answers with facts and arrays. formats calls it; the
functions that the process runs are in `formats/contents/tasks.py`.
"""
