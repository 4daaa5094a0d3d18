"""The programs that the engine is measured beside, each in an environment of its own."""
