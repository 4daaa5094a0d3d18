/* Put before each source, so that the loops are compiled for one kind of processor only, which need not be the best one
 * that the machine has (test_build.py). ONE_PROCESSOR: 1 for the plainest x86-64, 3 for one with AVX2. */
#include COMMON_H
#undef LOOP
#if ONE_PROCESSOR == 3
#define LOOP __attribute__((target("arch=x86-64-v3")))
#else
#define LOOP
#endif
