"""python without_cxx.py PROGRAM [ARGS]: run a program whose C++ kernels are not compiled, only written.

Inductor has written all artifacts before it calls the C++ compiler, which takes most of the time of a tiny program.
"""

import runpy
import sys
from pathlib import Path

from torch._inductor.async_compile import AsyncCompile
from torch._inductor.cpu_vec_isa import VecISA

VecISA.check_build = lambda self, code: True  # nor is the compiler asked what it could do
AsyncCompile.cpp_pybinding = lambda self, *args, **kwargs: lambda *arguments: None
sys.argv = sys.argv[1:]
sys.path[0] = str(Path(sys.argv[0]).parent)
runpy.run_path(sys.argv[0], run_name="__main__")
