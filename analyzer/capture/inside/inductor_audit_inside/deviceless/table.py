"""Everything that is replaced in torch and triton, in the order in which it is installed."""

from __future__ import annotations

import importlib
from types import ModuleType

from inductor_audit_inside.deviceless.patch import Patch, Release
from inductor_audit_inside.request import load_request

TABLE = (
    Patch(
        "device queries",
        "torch",
        "queries:answer",
        "torch.cuda and torch._C ask the driver what device there is; the profile answers",
    ),
    Patch(
        "device queries without the name of CUDA",
        "torch.accelerator",
        "queries:answer_accelerator",
        "torch.accelerator asks C++ which device there is",
    ),
    Patch(
        "streams and events",
        "torch",
        "queries:stand_in_for_streams",
        "programs time themselves with events and order work by streams; without work there is nothing to order",
    ),
    Patch(
        "device queries of Dynamo",
        "torch._dynamo.device_interface",
        "queries:answer_dynamo",
        "CudaInterface keeps the functions of torch.cuda that were there when it was defined, which is while torch is "
        "being imported",
    ),
    Patch(
        "device guard",
        "torch",
        "guard:no_op_guard",
        "c10 looks up a guard for CUDA on every call, and a build without CUDA has none",
        since=(2, 10),
        cpu_wheel=True,
    ),
    Patch(
        "device guard of older versions",
        "torch",
        "guard:guard_of_ones",
        "c10 asks the guard for CUDA on every call, and the real one asks the driver",
        before=(2, 10),
    ),
    Patch(
        "fake tensors without a device",
        "torch._subclasses.fake_tensor",
        "tensors:no_device_for_fakes",
        "FakeTensorMode touches the device when torch.cuda.is_available() is true",
    ),
    Patch(
        "allocation",
        "torch._subclasses.fake_tensor",
        "tensors:allocate_fakes",
        "aten::empty and aten::empty_strided, which every CUDA tensor comes from, give FakeTensors",
    ),
    Patch(
        "kernels of CUDA",
        "torch._subclasses.fake_tensor",
        "reached:send_back",
        "some code of torch switches Python dispatch off, or launches without it; such calls go back to the fake mode",
    ),
    Patch(
        "addresses of fake tensors",
        "torch._subclasses.fake_tensor",
        "tensors:number_addresses",
        "programs compare addresses to see what shares memory, and Inductor to see what is aligned",
    ),
    Patch(
        "modules of fake parameters",
        "torch",
        "tensors:apply_to_modules",
        "Module.to() swaps tensors in place, which FakeTensors refuse",
    ),
    Patch(
        "values of fake tensors",
        "torch._subclasses.fake_tensor",
        "placeholders:answer",
        "a program that reads a value (a loss, a flag) goes on with a placeholder",
    ),
    Patch(
        "formatted fake tensors",
        "torch._subclasses.fake_tensor",
        "placeholders:format_numbers",
        "torch formats the value of a plain tensor only, and programs print their loss so",
    ),
    Patch(
        "values that ops give",
        "torch._subclasses.fake_impls",
        "placeholders:answer_ops",
        "comparisons, and C++ that reads a value, have no value to read; they go on with a placeholder",
    ),
    Patch(
        "saved tensors",
        "torch",
        "checkpoints:skip_saving",
        "there is nothing to write, and a file that the program has must not be lost",
    ),
    Patch(
        "loaded tensors",
        "torch",
        "checkpoints:load_as_fakes",
        "torch.load puts what was saved on a device into memory of that device",
    ),
    Patch(
        "recurrent layers",
        "torch",
        "recurrent:without_cudnn",
        "cuDNN's layers ask the driver about their stream before they come to an op",
    ),
    Patch(
        "weights of recurrent layers",
        "torch",
        "recurrent:leave_weights_apart",
        "moving such a layer to the device has cuDNN lay out its weights",
    ),
    Patch(
        "attention backend",
        "torch",
        "attention:choose",
        "scaled_dot_product_attention asks the real device which kernels it has, and quietly takes the slow one here",
    ),
    Patch(
        "autograd engine",
        "torch.autograd.graph",
        "engine:drive_in_python",
        "the C++ engine wants a stream of the device that a gradient lies on",
    ),
    Patch(
        "stack traces of the backward graph",
        "torch._functorch._aot_autograd.logging_utils",
        "engine:keep_stack_traces",
        "AOTAutograd hooks autograd nodes to carry source lines over; the Python engine runs no C++ hooks",
    ),
    Patch(
        "inputs of another fake mode",
        "torch._dynamo.output_graph",
        "tensors:share_the_fake_mode",
        "AOTAutograd refuses inputs that are fake in a mode other than its own",
        before=(2, 13),
    ),
    Patch(
        "state of another fake mode",
        "torch._functorch.aot_autograd",
        "tensors:share_the_fake_mode_of_state",
        "so does it with what a graph keeps as attributes",
        before=(2, 13),
    ),
    Patch(
        "settings of Inductor",
        "torch._inductor.config",
        "settings:of_inductor",
        "no timing of epilogues, and no autotuning while code is generated",
    ),
    Patch(
        "settings of AOTAutograd",
        "torch._functorch.config",
        "settings:of_functorch",
        "a backward graph is compiled with its forward graph, also when backward is never called",
    ),
    Patch(
        "triton driver",
        "triton.runtime.driver",
        "driver:stand_in",
        "triton asks its driver for the target and for sizes; the profile answers",
    ),
    Patch(
        "triton driver of the nvidia backend",
        "triton.backends",
        "driver:of_backend",
        "templates make a driver of their own from the backend's class",
    ),
    Patch(
        "clock rates",
        "triton.testing",
        "driver:clocks",
        "triton calls nvidia-smi to estimate peak rates",
    ),
    Patch(
        "stop after code generation",
        "torch._inductor.graph",
        "stop:after_codegen",
        "the wrapper's code is written, and calls go to the post-grad graph",
        codegen_only=True,
    ),
    Patch(
        "compiled module",
        "torch._inductor.codecache",
        "stop:instead_of_loading",
        "importing the wrapper would compile its kernels",
        codegen_only=True,
    ),
    Patch(
        "constant folding",
        "torch._inductor.constant_folding",
        "folding:fold_on_cpu",
        "folding computes real values on the graph's device",
    ),
    Patch(
        "autotuning",
        "torch._inductor.select_algorithm",
        "timing:choose_kernels",
        "the winner among kernels is found by timing them",
    ),
    Patch(
        "padding of matrix products",
        "torch._inductor.fx_passes.pad_mm",
        "timing:choose_padding",
        "whether padding pays is found by timing both",
    ),
    Patch(
        "NCCL",
        "torch.distributed.distributed_c10d",
        "refusals:refuse_nccl",
        "a process group of NCCL ends the process when it finds no device",
    ),
    Patch(
        "CUDA graphs",
        "torch._inductor.output_code",
        "stop:without_cuda_graphs",
        "the compiled graph would be recorded on the device",
    ),
)

_chosen: list[Patch] = []


def select(torch: ModuleType) -> None:
    """Take the entries that this torch and this request need."""
    asked = load_request() or {}
    release = release_of(str(torch.__version__))
    built = torch.backends.cuda.is_built()
    _chosen[:] = [
        patch
        for patch in TABLE
        if patch.is_for(release)
        and not (patch.cpu_wheel and built)
        and (asked.get("profile") is not None or patch.codegen_only)
    ]


def release_of(version: str) -> Release:
    """(major, minor) of a torch version."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def chosen() -> tuple[Patch, ...]:
    """The entries in use."""
    return tuple(_chosen)


def modules() -> tuple[str, ...]:
    """The modules to wait for, in order."""
    return tuple(dict.fromkeys(patch.module for patch in _chosen))


def install(module: ModuleType) -> None:
    """Install the entries of a module that has just been imported; a failure is kept, and told in `deviceless.json`."""
    for patch in (patch for patch in _chosen if patch.module == module.__name__):
        where, function = patch.where.split(":")
        action = getattr(importlib.import_module(f"inductor_audit_inside.deviceless.{where}"), function)
        try:
            action(module, patch)
        except Exception as error:  # noqa: BLE001 - private API of a torch version that nobody tried
            patch.error = f"{type(error).__name__}: {error}"
        else:
            patch.installed = True
