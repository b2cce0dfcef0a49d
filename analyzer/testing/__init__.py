"""The pytest plugin: captures a function in a test, and asserts on fates and kernels."""
