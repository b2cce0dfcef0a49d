"""C++ wrappers: inside Python (`cpp_wrapper`) and alone (AOTInductor), for CPU and for CUDA."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.artifacts.output_code import parse
from analyzer.model import Allocation, ArtifactState, Free, OutputCode, Rename

RUNS = Path(__file__).parent.parent / "fixtures" / "runs"


def read(program: str) -> OutputCode:
    (path,) = [path for path in (RUNS / program).rglob("output_code.*") if path.suffix in (".py", ".cpp")]
    return parse(path.read_text(encoding="utf-8"), path.name)


def entry(body: str, before: str = "") -> OutputCode:
    """An AOTInductor file whose entry function has this body, from line 4 on when `before` is empty."""
    head = "void AOTInductorModel::run_impl(\n    AtenTensorHandle* input_handles, // comment\n    X y) {\n"
    return parse(f"{before}{head}{body}\n}} // AOTInductorModel::run_impl\n", "output_code.cpp")


def allocations(code: OutputCode) -> list[tuple[object, ...]]:
    return [(s.buffer, s.size, s.stride, s.dtype) for s in code.steps if isinstance(s, Allocation)]


def renames(code: OutputCode) -> list[tuple[str, str, str]]:
    return [(step.new, step.old, step.kind) for step in code.steps if isinstance(step, Rename)]


def test_shim_calls_inside_python() -> None:
    code = read("cpu-2.13/c45_cpp_wrapper")
    assert code.artifact.state is ArtifactState.PARSED
    assert code.language == "cpp_wrapper"
    assert (code.inputs, code.returns) == (("arg0_1", "arg1_1"), ("buf8", "buf3"))
    assert code.input_layouts["arg1_1"].size == (16, 12)
    assert [(call.kind, call.callee, call.handle, call.outputs) for call in code.calls()] == [
        ("cpp", "cpp_fused_sin_0", 1, ()),
        ("extern", "aoti_torch_cpu_mm_out", 2, ("buf1",)),
        ("fallback", "aoti_torch_cpu_sort_stable", 3, ("buf3", "buf4")),
        ("cpp", "cpp_fused__softmax_add_1", 4, ()),
    ]
    assert [call.buffers for call in code.calls()][1] == ("buf1", "buf0", "arg1_1")
    assert allocations(code)[0] == ("buf0", (8, 16), (16, 1), "torch.float32")
    assert [step.buffer for step in code.steps if isinstance(step, Free)] == ["arg0_1", "arg1_1", "buf0"]


def test_at_calls_of_torch_2_5() -> None:
    code = read("cpu-2.5/c45_cpp_wrapper")
    assert code.artifact.state is ArtifactState.PARSED
    assert [(call.kind, call.callee) for call in code.calls()] == [
        ("cpp", "cpp_fused_sin_0"),
        ("extern", "at::mm_out"),
        ("fallback", "at::_ops::sort_stable::call"),
        ("cpp", "cpp_fused__softmax_add_1"),
    ]
    assert renames(code) == [("buf3", "buf2", "item")]
    assert code.returns == ("buf8", "buf3")


def test_kernels_are_definitions_not_declarations() -> None:
    code = read("cpu-2.13/c45_cpp_wrapper")
    path = next((RUNS / "cpu-2.13/c45_cpp_wrapper").rglob("output_code.py"))
    lines = path.read_text(encoding="utf-8").split("\n")
    assert [kernel.name for kernel in code.kernels] == ["cpp_fused_sin_0", "cpp_fused__softmax_add_1"]
    for kernel in code.kernels:
        assert kernel.location is not None
        assert kernel.name in lines[kernel.location.line - 1]
        assert kernel.loop_nests == 1
    assert [param.name for param in code.kernels[1].params] == ["in_ptr0", "out_ptr0", "out_ptr1", "out_ptr2"]
    assert code.kernels[1].local_buffers == 1


def test_aotinductor_keeps_the_parameters_names() -> None:
    code = read("cpu-2.13/c46_aoti")
    assert code.artifact.state is ArtifactState.PARSED
    assert code.language == "aoti"
    assert code.constants == {"fc_weight": "fc.weight"}
    assert code.inputs == ("arg2_1",)
    addmm = next(call for call in code.calls() if call.kind == "extern")
    assert addmm.buffers[:4] == ("buf2", "buf1", "buf0", "fc_weight")
    assert addmm.comment.source_nodes == ("sin", "linear")
    assert addmm.handle == 2


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("    auto buf1 = std::move(buf0);  // reuse", ("buf1", "buf0", "reuse")),
        ("    decltype(auto) buf1 = buf0; buf0.reset();;  // reuse", ("buf1", "buf0", "reuse")),
        (
            "    auto buf1 = wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(buf0, 2, a, b, 0L));"
            " buf0.reset();  // reuse",
            ("buf1", "buf0", "reuse"),
        ),
        (
            "    auto buf1 = wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(buf0, 2, a, b, 8L));  // alias",
            ("buf1", "buf0", "alias"),
        ),
        ("    auto buf1 = std::get<0>(buf0);", ("buf1", "buf0", "item")),
    ],
)
def test_one_memory_with_two_names(line: str, expected: tuple[str, str, str]) -> None:
    code = entry(f"    RAIIAtenTensorHandle buf0(buf0_handle);\n{line}")
    assert code.artifact.problems == ()
    assert renames(code) == [expected]
    assert not [step for step in code.steps if isinstance(step, Free)]


def test_symbolic_sizes_and_scalar_outputs() -> None:
    code = entry(
        "    auto inputs = steal_from_raw_handles_to_raii_handles(input_handles, 2);\n"
        "    int64_t arg0_1;\n"
        "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_item_int64(inputs[0], &arg0_1));\n"
        "    auto arg1_1 = std::move(inputs[1]);\n"
        "    int64_t s0 = arg0_1;\n"
        "    const int64_t int_array_0[] = {s0, 4L};\n"
        "    static constexpr int64_t *int_array_1=nullptr;\n"
        "    AtenTensorHandle buf0_handle;\n"
        "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_0, int_array_0,"
        " cached_torch_dtype_int64, cached_torch_device_type_cpu, 0, &buf0_handle));\n"
        "    RAIIAtenTensorHandle scalar_to_tensor_0 = scalar_to_tensor_handle(2L*s0);\n"
        "    output_handles[0] = buf0.release();\n"
        "    output_handles[1] = scalar_to_tensor_0.release();"
    )
    assert code.artifact.problems == ()
    assert allocations(code) == [("buf0", ("s0", 4), ("s0", 4), "torch.int64")]
    assert code.inputs == ("arg0_1", "arg1_1")
    assert code.returns == ("buf0", None)


def test_saved_weights_that_are_wrapped_for_a_call_keep_their_name() -> None:
    code = entry(
        "    auto primals_4 = std::move(inputs[0]);\n"
        "    AtenTensorHandle tmp_primals_4_1;\n"
        "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_new_tensor_handle(primals_4, &tmp_primals_4_1));\n"
        "    RAIIAtenTensorHandle buf0(buf0_handle);\n"
        "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_mm_out(buf0, buf0, RAIIAtenTensorHandle(tmp_primals_4_1)));"
    )
    (call,) = code.calls()
    assert call.buffers == ("buf0", "buf0", "primals_4")


CUDA = """\
template <typename in_ptr0_type_, typename out_ptr0_type_, typename kernels_type_>
static inline void call_triton_poi_fused_sin_0(
    const in_ptr0_type_& in_ptr0,
    const out_ptr0_type_& out_ptr0,
    int64_t xnumel,
    int32_t device_idx_,
    cudaStream_t stream_,
    kernels_type_& kernels_,
    const std::optional<std::string>& cubin_dir_ = std::nullopt
){
    /*
    async_compile.triton('triton_poi_fused_sin_0', '''
@triton_heuristics.pointwise(
    inductor_meta={'num_load': 1, 'num_store': 1},
)
    ''')
    */
    if (kernels_.triton_poi_fused_sin_0 == nullptr) {
        kernels_.triton_poi_fused_sin_0 = loadKernel("/x.cubin", "triton_poi_fused_sin_0", 0, cubin_dir_);
    }
}
"""


def test_device_kernels_are_called_through_their_launcher() -> None:
    code = entry(
        "    ensure_triton_kernel_compiles_started();\n"
        "    auto arg0_1 = std::move(inputs[0]);\n"
        "    AOTICudaStreamGuard stream_guard(stream, this->device_idx_);\n"
        "    RAIIAtenTensorHandle buf0(buf0_handle);\n"
        "    // [Provenance debug handles] triton_poi_fused_sin_0:1\n"
        "    call_triton_poi_fused_sin_0(arg0_1, buf0, 16L, this->device_idx_, stream, kernels, this->cubin_dir_);",
        before=CUDA,
    )
    assert code.artifact.problems == ()
    (kernel,) = code.kernels
    assert (kernel.backend, kernel.heuristic, dict(kernel.meta)) == (
        "triton",
        "pointwise",
        {"num_load": "1", "num_store": "1"},
    )
    assert [param.name for param in kernel.params] == ["in_ptr0", "out_ptr0", "xnumel"]
    (call,) = code.calls()
    assert (call.callee, call.kind, call.handle) == ("triton_poi_fused_sin_0", "triton", 1)
    assert call.buffers[:3] == ("arg0_1", "buf0", "")


def test_older_launches_pass_pointers_through_variables() -> None:
    code = entry(
        "    auto arg0_1 = std::move(inputs[0]);\n"
        "    RAIIAtenTensorHandle buf0(buf0_handle);\n"
        "    CUdeviceptr var_0;\n"
        "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_data_ptr(arg0_1, reinterpret_cast<void**>(&var_0)));\n"
        "    CUdeviceptr var_1 = reinterpret_cast<CUdeviceptr>(buf0.data_ptr());\n"
        "    int64_t var_2 = 16L;\n"
        "    void* kernel_args_var_0[] = {&var_0, &var_1, &var_2};\n"
        "    Grid triton_grid_0 = Grid(1, 1, 1);\n"
        "    launchKernel(kernels.triton_0, triton_grid_0.grid_x, 1, 1, 4, 0, kernel_args_var_0, stream);"
    )
    assert code.artifact.problems == ()
    (call,) = code.calls()
    assert (call.callee, call.kind, call.buffers) == ("triton_0", "triton", ("arg0_1", "buf0", ""))


def test_unknown_statement_is_reported_where_it_stands() -> None:
    code = entry("    auto arg0_1 = std::move(inputs[0]);\n    frobnicate(arg0_1);")
    (problem,) = code.artifact.problems
    assert (problem.location.line, problem.location.column, problem.excerpt) == (5, 5, "    frobnicate(arg0_1);")
    assert code.artifact.state is ArtifactState.PARTIAL
    assert code.inputs == ("arg0_1",)


def test_unknown_entry_function_is_named() -> None:
    code = parse("cpp_wrapper_src = (\n'''\nvoid other_entry() {\n}\n'''\n)\n", "output_code.py")
    (problem,) = code.artifact.problems
    assert problem.message == "expected an entry function, `inductor_entry_impl` or `AOTInductorModel::run_impl`"
    assert problem.location.line == 4


@pytest.mark.parametrize("program", ["cpu-2.13/c45_cpp_wrapper", "cpu-2.13/c46_aoti", "cpu-2.5/c45_cpp_wrapper"])
def test_truncation_anywhere_is_a_state_and_a_place(program: str) -> None:
    (path,) = [path for path in (RUNS / program).rglob("output_code.*") if path.suffix in (".py", ".cpp")]
    text = path.read_text(encoding="utf-8")
    start = text.index("py::gil_scoped" if "cpp_wrapper" in program else "::run_impl(\n    AtenTensorHandle*")
    for cut in range(start, len(text), 997):
        code = parse(text[:cut], path.name)
        lines = text.count("\n", 0, cut) + 1
        assert all(1 <= problem.location.line <= lines for problem in code.artifact.problems)
        assert code.artifact.state in (ArtifactState.PARTIAL, ArtifactState.PARSED)
    inside = parse(text[: text.index("output_handles[0] =")], path.name)
    assert inside.artifact.state is ArtifactState.PARTIAL
    assert any("before the end of the file" in problem.message for problem in inside.artifact.problems)
