"""`output_code.py` as Inductor writes it on CPU and CUDA, and what is said about files that are broken."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.artifacts.output_code import parse
from analyzer.model import Allocation, ArtifactState, Free, KernelCall, KernelDef, OutputCode, Rename

RUNS = Path(__file__).parent.parent / "fixtures" / "runs"
SMALL = """\
async_compile = AsyncCompile()
cpp_fused_cos_0 = async_compile.cpp_pybinding(['const float*', 'float*'], r'''
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0)
{
    for(int64_t x0=0; x0<8; x0+=1) { out_ptr0[x0] = in_ptr0[x0]; }
}
''')
def call(args):
    arg0_1, = args
    args.clear()
    buf0 = empty_strided_cpu((8, ), (1, ), torch.float32)
    cpp_fused_cos_0(arg0_1, buf0)
    del arg0_1
    return (buf0, )
"""


def fixture_files() -> list[Path]:
    return sorted(path for path in RUNS.rglob("output_code.*") if path.suffix in (".py", ".cpp"))


def read(program: str, graph: str = "") -> OutputCode:
    (path,) = [path for path in fixture_files() if f"/{program}/" in path.as_posix() and graph in path.parent.name]
    return parse(path.read_text(encoding="utf-8"), "output_code.py")


def call_body(body: str) -> OutputCode:
    """An output code whose `call` has these lines."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return parse(f"async_compile = AsyncCompile()\ndef call(args):\n{lines}    return (buf0, )\n", "f.py")


def only_call(code: OutputCode) -> KernelCall:
    (call,) = code.calls()
    return call


def renames(code: OutputCode) -> list[tuple[str, str, str]]:
    return [(step.new, step.old, step.kind) for step in code.steps if isinstance(step, Rename)]


def allocated(code: OutputCode) -> list[str]:
    return [step.buffer for step in code.steps if isinstance(step, Allocation)]


def kernel(code: OutputCode, name: str) -> KernelDef:
    return next(kernel for kernel in code.kernels if kernel.name == name)


# ------------------------------------------------------------------------------------------------------- real artifacts


@pytest.mark.parametrize("path", fixture_files(), ids=lambda path: "-".join(path.relative_to(RUNS).parts[:2]))
def test_every_fixture_is_read_completely(path: Path) -> None:
    code = parse(path.read_text(encoding="utf-8"), path.name)
    assert code.artifact.state is ArtifactState.PARSED, code.artifact.problems
    assert code.artifact.problems == ()
    known = {kernel.name for kernel in code.kernels}
    for call in code.calls():
        assert call.kind in {"cpp", "triton", "template", "user_triton", "extern", "fallback", "subgraph"}
        assert (call.callee in known) == (call.kind in {"cpp", "triton", "template", "user_triton"})
    assert all(kernel.params for kernel in code.kernels)


def test_training_forward_on_cpu() -> None:
    code = read("cpu-2.13/c11_mlp_train", "forward")
    assert code.aot_id == "0_forward"
    assert code.language == "python"
    assert code.inputs[0] == "primals_1"
    assert set(code.input_layouts) == set(code.inputs)


def test_dynamic_shapes_append_sizes_that_are_no_buffers() -> None:
    code = read("cpu-2.13/c26_unbacked")
    last = [call for call in code.calls() if call.kind == "cpp"][-1]
    assert last.args[-2:] == ("u0", "u4")
    assert last.buffers[-2:] == ("", "")
    assert [param.name for param in kernel(code, last.callee).params[-2:]] == ["ks0", "ks1"]
    by_buffer = {step.buffer: step for step in code.steps if isinstance(step, Allocation)}
    assert by_buffer["buf11"].size == ("u0",)
    assert ("buf2", "buf1", "view") in renames(code)


def test_branches_are_entered_where_call_runs_them() -> None:
    code = read("cpu-2.13/c29_cond")
    assert [(call.scope, call.callee) for call in code.calls()] == [
        ("call", "cpp_fused_mul_0"),
        ("call", "true_graph_0"),
        ("true_graph_0", "cpp_fused_add_mul_relu_sin_1"),
        ("call", "false_graph_0"),
        ("false_graph_0", "extern_kernels.addmm"),
        ("call", "cpp_fused_exp_2"),
    ]
    entries = [call for call in code.calls() if call.kind == "subgraph"]
    assert [(call.outputs, call.mentions) for call in entries] == [(("buf1",), ("buf0",)), (("buf1",), ("buf0",))]
    assert [call.handle for call in code.calls()] == [1, None, 2, None, 3, 4]
    assert renames(code) == [("buf2", "buf1", "item"), ("buf3", "buf2", "reuse")]


def test_memory_that_is_taken_over_is_not_freed() -> None:
    code = read("cpu-2.13/c29_cond")
    assert "buf2" not in {step.buffer for step in code.steps if isinstance(step, Free)}


def test_partition_holds_the_calls_of_a_cudagraphs_run() -> None:
    code = read("cuda-2.14.1-a100/reduce_overhead")
    call = only_call(code)
    assert code.partitions == 1
    assert (call.scope, call.callee, call.kind, call.handle) == (
        "partition_0",
        "triton_per_fused_add_sin_sum_0",
        "triton",
        1,
    )
    assert call.buffers == ("arg0_1", "buf0", "", "")
    assert call.kwargs == (("stream", "raw_stream0"),)
    assert code.inputs == ("arg0_1",)
    assert code.returns == ("buf0",)


def test_workspaces_between_the_comment_and_its_call_do_not_part_them() -> None:
    code = read("cuda-2.14.1-a100/reduction_coop")
    call = only_call(code)
    assert call.handle == 1
    assert call.comment.source_nodes == ("max_1", "sum_1")
    assert allocated(code) == ["buf0", "buf2", "semaphores_cuda_0", "workspace_0"]
    (definition,) = code.kernels
    assert definition.comment.returns == ("getitem", "sum_1")
    assert definition.heuristic == "cooperative_reduction"
    assert dict(definition.meta)["num_reduction"] == "2"
    names = [param.name for param in definition.params]
    assert dict(zip(names, call.buffers, strict=False))["ws_ptr"] == "workspace_0"


def test_cpu_gemm_template_with_frozen_weights() -> None:
    code = read("cpu-2.13/c43_max_autotune_cpp_gemm")
    assert [definition.backend for definition in code.kernels] == ["template", "template"]
    assert [call.kind for call in code.calls()] == ["template", "template"]
    assert [param.name for param in code.kernels[0].params] == ["X", "W", "in_ptr2", "Y"]
    assert code.constants["_frozen_param1"].startswith("device(type='cpu') torch.float32 (128,) (1,)")


def test_triton_template_is_called_with_its_grid() -> None:
    code = read("cuda-2.9.1-a100/max_autotune_mm")
    templates = [definition for definition in code.kernels if definition.backend == "template"]
    assert templates
    assert {call.kind for call in code.calls() if call.callee == templates[0].name} == {"template"}


# -------------------------------------------------------------------------------------------------------- kernel bodies


def cpp_body(body: str) -> KernelDef:
    head = 'extern "C"  void  kernel(const float* __restrict__ in_ptr0, float* in_out_ptr0, const int64_t ks0)'
    source = f"{head}\n{body}\n"
    text = f"k_0 = async_compile.cpp_pybinding(['float*'], '''\n{source}''')\ndef call(args):\n    return ()\n"
    (definition,) = parse(text, "f.py").kernels
    return definition


@pytest.mark.parametrize(
    ("body", "nests"),
    [
        ("{ { { auto tmp0 = in_ptr0[0]; } } }", 0),
        ("{ for(a;b;c) { for(d;e;f) { x; } } }", 1),
        ("{ for(a;b;c) { x; }\n for(a;b;c) { y; } }", 2),
        ("{ for(a;b;c)\n#pragma GCC ivdep\n for(d;e;f) x; for(;;) y; }", 2),
        (
            "{\n#pragma omp parallel\n{\n#pragma omp for\nfor(a; b; c)\n{ for(d;e;f) { } }\n"
            "#pragma omp single\n{ { for(;;) {} } } } }",
            2,
        ),
        ('{ // for(a;b;c) {\n auto s = "for(;;) {"; /* for(;;) */ }', 0),
        ("{ for(int i = f(a, g(b)); i < (n); i++) { if (x) { y; } else { for(;;) {} } } }", 1),
    ],
)
def test_loop_nests_are_the_outermost_loops(body: str, nests: int) -> None:
    assert cpp_body(body).loop_nests == nests


def test_parameters_and_local_buffers_of_a_cpp_kernel() -> None:
    definition = cpp_body(
        "{ std::unique_ptr<float []> buf_local = std::make_unique<float []>(12L);"
        " at::vec::Vectorized<float> a = at::vec::clamp(b); }"
    )
    assert [(param.name, param.type) for param in definition.params] == [
        ("in_ptr0", "const float* __restrict__"),
        ("in_out_ptr0", "float*"),
        ("ks0", "const int64_t"),
    ]
    assert definition.local_buffers == 1
    assert definition.vector_uses == 2


def test_triton_names_come_from_the_left_and_parameters_from_the_jit_function() -> None:
    text = """triton_poi_fused_add_0 = async_compile.triton('triton_', \'\'\'
@triton.jit
def _combine(a, b):
    return a + b
@triton_heuristics.pointwise(
    size_hints=[8],
    triton_meta={'signature': {0: '*fp32', 1: '*fp32', 2: 'i32'}, 'device': DeviceProperties(type='cuda')},
    inductor_meta={'autotune_hints': set(), 'mutated_arg_names': ['in_out_ptr0'], 'no_x_dim': False, 'num_load': 1},
)
@triton.jit
def triton_(in_out_ptr0, in_ptr0, xnumel, XBLOCK : tl.constexpr):
    pass
\'\'\', device_str='cuda')
def call(args):
    triton_poi_fused_add_0.run(buf0, arg0_1, 8, grid=grid(8), stream=stream0)
    return (buf0, )
"""
    code = parse(text, "f.py")
    (definition,) = code.kernels
    assert (definition.name, definition.heuristic, definition.backend) == (
        "triton_poi_fused_add_0",
        "pointwise",
        "triton",
    )
    assert [(param.name, param.type) for param in definition.params] == [
        ("in_out_ptr0", "*fp32"),
        ("in_ptr0", "*fp32"),
        ("xnumel", "i32"),
        ("XBLOCK", "constexpr"),
    ]
    meta = dict(definition.meta)
    assert (meta["mutated_arg_names"], meta["num_load"], meta["autotune_hints"]) == ("['in_out_ptr0']", "1", "set()")
    assert only_call(code).kwargs == (("grid", "grid(8)"), ("stream", "stream0"))


def test_user_defined_triton_kernel() -> None:
    text = """# Original path: /home/u/f.py:7
addk_0 = async_compile.triton('addk', '''
@triton_heuristics.user_autotune(
    configs=[{}], inductor_meta={'kernel_name': 'addk_0'},
)
@triton.jit
def addk(x_ptr, n, BLOCK: tl.constexpr):
    pass
''', device_str='cuda')
def call(args):
    addk_0.run(arg0_1, 8, 1, 1, 1, stream=raw_stream0)
    return (arg0_1, )
"""
    code = parse(text, "f.py")
    assert only_call(code).kind == "user_triton"
    assert [param.name for param in code.kernels[0].params] == ["x_ptr", "n", "BLOCK"]


def test_kernels_of_unknown_factories_are_kept() -> None:
    text = """mps_lib_0 = compile_mps_shader('''
kernel void generated_kernel() {}
''')
multi_kernel_0 = async_compile.multi_kernel('multi_kernel_0', [a, b])
def call(args):
    mps_lib_0.generated_kernel(buf0, arg0_1, threads=[8])
    multi_kernel_0.run(buf0, 8)
    return (buf0, )
"""
    code = parse(text, "f.py")
    assert [(definition.name, definition.backend) for definition in code.kernels] == [
        ("mps_lib_0", "other"),
        ("multi_kernel_0", "other"),
    ]
    assert [(call.callee, call.kind) for call in code.calls()] == [("mps_lib_0", "other"), ("multi_kernel_0", "other")]
    assert code.artifact.state is ArtifactState.PARSED


def test_quotes_inside_a_kernel_do_not_end_it() -> None:
    text = SMALL.replace("{\n    for", "{\n    // a \\''' quoted ''' word\n    for")
    code = parse(text, "f.py")
    assert code.artifact.state is ArtifactState.PARSED
    assert code.kernels[0].loop_nests == 1


# ----------------------------------------------------------------------------------------------------------- statements


@pytest.mark.parametrize(
    ("line", "callee", "kind", "buffers", "outputs"),
    [
        (
            "extern_kernels.mm(arg0_1, reinterpret_tensor(arg1_1, (4, 8), (1, 4), 0), out=buf0)",
            "extern_kernels.mm",
            "extern",
            ("arg0_1", "arg1_1"),
            ("buf0",),
        ),
        (
            "buf0 = extern_kernels.convolution(arg0_1, arg1_1, stride=(1, 1), bias=None)",
            "extern_kernels.convolution",
            "extern",
            ("arg0_1", "arg1_1"),
            ("buf0",),
        ),
        (
            "buf0 = torch.ops.aten.sort.stable(arg0_1, stable=True)",
            "torch.ops.aten.sort.stable",
            "fallback",
            ("arg0_1",),
            ("buf0",),
        ),
        ("aten.randint.low_out(-9, 9, [1], out=buf0)", "aten.randint.low_out", "fallback", ("", "", ""), ("buf0",)),
        (
            "triton_poi_fused_0.run(arg0_1, buf0, 8, grid=grid(8), stream=stream0)",
            "triton_poi_fused_0",
            "triton",
            ("arg0_1", "buf0", ""),
            (),
        ),
        ("buf2.copy_(buf1, False)", "copy_", "fallback", ("buf1", ""), ("buf2",)),
        ("reinterpret_tensor(buf2, (4, ), (1, ), 8).copy_(buf1)", "copy_", "fallback", ("buf1",), ("buf2",)),
        ("aten.copy_(buf2, buf1)", "aten.copy_", "fallback", ("buf2", "buf1"), ()),
    ],
)
def test_call_forms(line: str, callee: str, kind: str, buffers: tuple[str, ...], outputs: tuple[str, ...]) -> None:
    call = only_call(call_body(line))
    assert (call.callee, call.kind, call.buffers, call.outputs) == (callee, kind, buffers, outputs)
    assert (call.location and (call.location.line, call.location.column)) == (3, 5)


@pytest.mark.parametrize(
    "made",
    [
        "triton.tools.tensor_descriptor.TensorDescriptor.from_tensor(buf0, [16])",
        "triton.tools.experimental_descriptor.create_1d_tma_descriptor(buf0.data_ptr(), 300, 64, 4)",
    ],
)
def test_a_descriptor_stands_for_its_tensor(made: str) -> None:
    """Triton kernels that load through the tensor memory accelerator are given descriptors."""
    assert only_call(call_body(f"desc_0 = {made}\nadd_0.run(desc_0, 300, stream=stream0)")).buffers[0] == "buf0"


def test_a_library_that_is_called_by_its_kernels_name_twice() -> None:
    code = parse(
        "cuda_fused_0 = async_compile.cuda(r'''\nint f() {}\n''', 'so')\n"
        "def call(args):\n    cuda_fused_0.cuda_fused_0(arg0_1, buf0, None, c_void_p(stream0))\n    return (buf0, )\n",
        "f.py",
    )
    assert code.artifact.problems == ()
    assert only_call(code).callee == "cuda_fused_0"


def test_tensors_inside_lists_are_mentioned_though_no_position_is_theirs() -> None:
    call = only_call(call_body("buf0 = torch.ops.aten._foreach_norm.Scalar([arg0_1, buf7], ord=2, out_like=arg2_1)"))
    assert call.buffers == ("",)
    assert call.mentions == ("arg0_1", "buf7", "arg2_1")


def test_ctypes_calls_of_torch_2_0() -> None:
    text = "kernel_cpp_0 = async_compile.cpp('''\nextern \"C\" void kernel(float* out_ptr0)\n{ }\n''')\n"
    text += (
        "def call(args):\n    kernel_cpp_0(c_void_p(buf0.data_ptr()))\n    return (as_strided(buf0, (4, ), (1, )), )\n"
    )
    code = parse(text, "f.py")
    assert only_call(code).buffers == ("buf0",)
    assert code.returns == ("buf0",)
    assert code.artifact.state is ArtifactState.PARSED


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("buf1 = buf0; del buf0  # reuse", ("buf1", "buf0", "reuse")),
        ("buf5 = reinterpret_tensor(buf3, (4, 4), (4, 1), 0); del buf3  # reuse", ("buf5", "buf3", "reuse")),
        ("buf2 = reinterpret_tensor(buf4, (2, 4), (8, 1), 4)  # alias", ("buf2", "buf4", "alias")),
        ("buf2 = buf1", ("buf2", "buf1", "view")),
        ("buf9 = buf8[0]", ("buf9", "buf8", "item")),
    ],
)
def test_one_memory_with_two_names(line: str, expected: tuple[str, str, str]) -> None:
    code = call_body(line)
    assert renames(code) == [expected]
    assert not [step for step in code.steps if isinstance(step, Free)]


def test_allocations_say_shape_dtype_and_maker() -> None:
    code = call_body(
        "pool1 = empty_strided_cuda((8192, ), (1, ), torch.uint8)\n"
        "buf0 = alloc_from_pool(pool1, 0, torch.float32, (s0, 2*s0), (2*s0, 1))\n"
        "buf1 = empty_strided((3, ), (1, ), device='cpu', dtype=torch.int64)"
    )
    steps = [step for step in code.steps if isinstance(step, Allocation)]
    assert [(step.buffer, step.via, step.size, step.stride, step.dtype) for step in steps] == [
        ("pool1", "empty_strided_cuda", (8192,), (1,), "torch.uint8"),
        ("buf0", "alloc_from_pool", ("s0", "2*s0"), ("2*s0", 1), "torch.float32"),
        ("buf1", "empty_strided", (3,), (1,), "torch.int64"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "assert_size_stride(arg0_1, (8, ), (1, ), 'input')",
        "assert_size_stride_grouped((a, b), ((8, ), (2, )), ((1, ), (1, )), 'input')",
        "raw_stream0 = get_raw_stream(0)",
        "torch.cuda.set_device(0)",
        "s77 = arg0_1",
        "triton_poi_fused_0_xnumel = s31*s90",
        "u0 = buf1.size(0)",
        "u1 = 2 + max(u0, 3)",
        "buf3 = None",
        "if not (u0 >= 2):\n    raise RuntimeError('u0 >= 2')",
        "with torch.cuda._DeviceGuard(0):\n    torch.cuda.set_device(0)",
        "arg0_1 = copy_if_misaligned(arg0_1)",
        "workspace_0.zero_()",
        "_d2h_event_buf2 = torch.Event()\n_d2h_event_buf2.record()\n_d2h_event_buf2.synchronize()",
        "stream1 = _get_stream_by_index(3)",
        "training_annotation = nvtx._device_range_start('forward')\nnvtx._device_range_end(training_annotation)",
        "buf5.extend([[] for _ in range(2)])\nbuf5[2].append(buf5[0])",
        "for kernel in globals().values():\n    kernel.cuda_kernel_saved = False",
        "# any comment",
    ],
)
def test_statements_without_a_step_are_no_problem(line: str) -> None:
    code = call_body(line)
    assert code.artifact.problems == ()
    assert code.steps == ()


def test_comment_belongs_to_the_next_call_only() -> None:
    code = call_body(
        "# Topologically Sorted Source Nodes: [y], Original ATen: [aten.mm]\n"
        "extern_kernels.mm(a, b, out=buf0)\n"
        "extern_kernels.mm(a, b, out=buf1)"
    )
    assert [call.comment.source_nodes for call in code.calls()] == [("y",), ()]


def test_returned_values_are_buffers_or_none() -> None:
    text = "async_compile.wait(globals())\ndef call(args):\n    s0, buf0 = args\n    s1 = s0\n"
    text += "    return (reinterpret_tensor(buf0, (4, ), (1, ), 0), None, s1, 5)\n"
    assert parse(text, "f.py").returns == ("buf0", None, None, None)


# --------------------------------------------------------------------------------------------------------- broken input


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("frobnicate(buf0)", (3, 5)),
        ("buf0 = frobnicate()", (3, 5)),
        ("x = lambda: 0", (3, 5)),
        ("if True:\n    frobnicate(buf0)", (4, 9)),
    ],
)
def test_unknown_statement_is_reported_where_it_stands(line: str, place: tuple[int, int]) -> None:
    code = call_body(line)
    (problem,) = code.artifact.problems
    assert (problem.location.line, problem.location.column) == place
    assert code.artifact.state is ArtifactState.PARTIAL


def test_one_bad_line_costs_one_line() -> None:
    text = SMALL.replace("    del arg0_1\n", "    del arg0_1 ]\n    buf1 = buf0; del buf0  # reuse\n")
    code = parse(text, "f.py")
    (problem,) = code.artifact.problems
    assert (problem.location.line, problem.lines, problem.excerpt) == (15, 1, "    del arg0_1 ]")
    assert only_call(code).buffers == ("arg0_1", "buf0")
    assert renames(code) == [("buf1", "buf0", "reuse")]


def test_kernel_without_an_end_is_reported_and_the_rest_is_read() -> None:
    code = parse(SMALL.replace("}\n''')\n", "}\n"), "f.py")
    (problem,) = code.artifact.problems
    assert (problem.location.line, problem.location.column) == (2, 79)
    assert problem.lines == 7
    assert code.kernels[0].name == "cpp_fused_cos_0"
    assert only_call(code).kind == "cpp"


def test_truncated_file_says_what_is_missing() -> None:
    before_call = parse(SMALL[: SMALL.index("def call")], "f.py")
    assert [problem.message for problem in before_call.artifact.problems] == [
        "expected a `call` function before the end of the file"
    ]
    before_return = parse(SMALL[: SMALL.index("    return")], "f.py")
    (problem,) = before_return.artifact.problems
    assert problem.message == "expected `call` to return before the end of the file"
    assert problem.location.line == 15
    assert allocated(before_return) == ["buf0"]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("", ArtifactState.EMPTY),
        ("\n \n", ArtifactState.EMPTY),
        ("<html><body>404</body></html>", ArtifactState.UNSUPPORTED),
        ("\0\1\2" * 500, ArtifactState.UNSUPPORTED),
        ("def call(args):\n    \0\n    return ()\n", ArtifactState.PARTIAL),
        ("def call(args):\n    x = " + "(" * 5000, ArtifactState.PARTIAL),
        ("def call(args):\n    x = " + "-" * 100000 + "1\n    return ()\n", ArtifactState.PARTIAL),
        ("x_0 = async_compile.cpp('''\n" * 3000, ArtifactState.PARTIAL),
        ("def call(args):\n    if a:\n        pass\n" + "    elif b:\n        pass\n" * 900, ArtifactState.PARTIAL),
    ],
)
def test_hostile_text_has_a_state_and_a_place(text: str, state: ArtifactState) -> None:
    started = time.process_time()
    artifact = parse(text, "f.py").artifact
    assert artifact.state is state
    assert time.process_time() - started < 5
    assert all(1 <= problem.location.line <= text.count("\n") + 1 for problem in artifact.problems)
    assert state is ArtifactState.EMPTY or artifact.problems


def test_pasted_line_ends_and_colours_change_nothing() -> None:
    assert parse(SMALL.replace("\n", "\r\n"), "f.py") == parse(SMALL, "f.py")
    assert parse(SMALL.replace("buf0", "\x1b[32mbuf0\x1b[0m"), "f.py") == parse(SMALL, "f.py")


def test_code_behind_the_benchmark_is_reported() -> None:
    text = SMALL + "\ndef benchmark_compiled_module(args, times=10):\n    fn = 1\n\nprint(call)\n"
    (problem,) = parse(text, "f.py").artifact.problems
    assert problem.location.line == 21


def edits() -> Iterator[str]:
    yield from ("", "'''", "(", "}", "\0", "\n", "#", "\\", " ", "# Source Nodes: [", "def call(args):\n")


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(SMALL)), st.integers(0, 80), st.sampled_from(list(edits())))
def test_any_edit_gives_a_state_and_places_inside_the_file(start: int, removed: int, inserted: str) -> None:
    text = SMALL[:start] + inserted + SMALL[start + removed :]
    code = parse(text, "f.py")
    for problem in code.artifact.problems:
        assert 1 <= problem.location.line <= text.count("\n") + 1
        assert problem.location.column >= 1
    assert (code.artifact.state is ArtifactState.PARSED) == (not code.artifact.problems)


def test_a_large_file_is_read_fast() -> None:
    kernel_text = SMALL[SMALL.index("cpp_fused") : SMALL.index("def call")]
    kernels = "".join(kernel_text.replace("cos_0", f"cos_{n}").replace("x0", f"x{n}") + "\n" * 100 for n in range(400))
    body = "".join(f"    cpp_fused_cos_{n}(arg0_1, buf0)\n" for n in range(400))
    text = f"async_compile = AsyncCompile()\n{kernels}\ndef call(args):\n{body}    return (buf0, )\n"
    started = time.process_time()
    code = parse(text, "f.py")
    assert len(list(code.calls())) == 400
    assert time.process_time() - started < 2
