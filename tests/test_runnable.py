"""The runnable script: version, settings, environment and inputs, and which settings mean anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.artifacts.config_noise import known_default, reason_for_noise
from analyzer.artifacts.runnable import meaningful_config, parse
from analyzer.model import ArtifactState, Layout, Location, RunnableScript

RUNS = Path(__file__).parent.parent / "fixtures/runs"
INDUCTOR = "torch._inductor.config."


def fixture(program: str, graph: str) -> RunnableScript:
    (path,) = RUNS.glob(f"{program}/**/{graph}/fx_graph_runnable.py")
    return parse(path.read_text(), "r.py")


def script(*head: str, version: str = "2.13.0", args: str = "    reader.symint(1)  # s0") -> RunnableScript:
    lines = [*head, f"# torch version: {version}", "class Repro(torch.nn.Module):", "def load_args(reader):", args]
    return parse("\n".join([*lines, "load_args._version = 0", ""]), "r.py")


@pytest.mark.parametrize("path", sorted(RUNS.glob("**/fx_graph_runnable.py")), ids=lambda path: path.parts[-6])
def test_every_fixture_is_read_whole(path: Path) -> None:
    read = parse(path.read_text(), "r.py")
    assert read.artifact.state is ArtifactState.PARSED
    assert read.torch_version
    assert path.read_text().count("    reader.") == len(read.inputs)


def test_a_cpu_run_of_2_13() -> None:
    read = fixture("cpu-2.13/c11_mlp_train", "model__0_forward_1.0")
    assert read.torch_version == "2.13.0+cpu"
    assert read.config[f"{INDUCTOR}trace.enabled"] == "False"
    assert read.environment["TORCH_COMPILE_DEBUG"] == "1"
    assert "TORCHDYNAMO_REPRO_AFTER" not in read.environment
    assert meaningful_config(read) == {f"{INDUCTOR}fx_graph_cache": "False"}
    name, layout = read.inputs[0]
    assert name == "primals_1"
    assert (layout.dtype, layout.size, layout.stride, layout.device) == ("torch.float32", (64, 32), (32, 1), "cpu")


def test_inputs_on_a_gpu_with_types_and_strides() -> None:
    read = script(
        args="    buf0 = reader.storage(None, 64, device=device(type='cuda', index=1), dtype_hint=torch.bfloat16)\n"
        "    reader.tensor(buf0, (4, s3), (1, 4), dtype=torch.bfloat16, storage_offset=2, is_leaf=True)  # arg0_1\n"
        "    reader.symint(3, expr='s16')  # arg1_1\n"
        "    reader.const('arg2_1')  # arg2_1, filtered out during compilation\n"
        "    reader.tensor(buf0, (), is_leaf=True)  # arg3_1\n"
        "    reader.tensor(buf0, (s3,), is_leaf=True)  # arg4_1"
    )
    layouts = dict(read.inputs)
    assert list(layouts) == ["arg0_1", "arg1_1", "arg2_1", "arg3_1", "arg4_1"]
    first = layouts["arg0_1"]
    assert (first.device, first.dtype, first.size, first.stride, first.offset) == (
        "cuda:1",
        "torch.bfloat16",
        (4, "s3"),
        (1, 4),
        2,
    )
    assert layouts["arg1_1"] == Layout("symint", "reader.symint(3, expr='s16')")
    assert layouts["arg2_1"].kind == "const"
    assert (layouts["arg3_1"].size, layouts["arg3_1"].stride) == ((), ())
    assert layouts["arg4_1"].stride is None, "the stride of a symbolic size is not guessed"


def test_values_over_several_lines_and_reprs_of_objects() -> None:
    read = script(
        f"{INDUCTOR}post_grad_fusion_options = {{'a': 1,",
        " 'b': [2,",
        "  3]}",
        f"{INDUCTOR}custom = <function f at 0x7f>",
        f"{INDUCTOR}max_fusion_size = 1",
        "torch._dynamo.config.reorderable_logging_functions = { _warnings.warn, print }",
        "torch.fx.experimental._config.use_duck_shape = False",
    )
    assert read.config[f"{INDUCTOR}post_grad_fusion_options"] == "{'a': 1,\n 'b': [2,\n  3]}"
    assert read.config[f"{INDUCTOR}custom"] == "<function f at 0x7f>"
    assert read.config[f"{INDUCTOR}max_fusion_size"] == "1"
    assert read.config["torch.fx.experimental._config.use_duck_shape"] == "False"
    assert read.config["torch._dynamo.config.reorderable_logging_functions"] == "{ _warnings.warn, print }"
    assert read.config_lines[f"{INDUCTOR}max_fusion_size"] == 5
    assert read.artifact.problems == ()


def test_environment_values_are_raw_text() -> None:
    read = script(
        "os.environ['TORCH_A'] = 'it\"s \\ here'",
        "os.environ['TORCH_B'] = 'two",
        "lines'",
        "os.environ['TORCH_C'] = ''",
        "os.environ['TORCH_D'] = 'gone'",
        "os.environ.pop('TORCH_D', None)",
    )
    assert read.environment == {"TORCH_A": 'it"s \\ here', "TORCH_B": "two\nlines", "TORCH_C": ""}


def test_config_lines_in_the_graph_are_no_settings() -> None:
    text = "# torch version: 2.9.1\nclass Repro(torch.nn.Module):\ntorch._inductor.config.x = 1\n"
    assert parse(text, "r.py").config == {}


def test_defaults_that_earlier_compiles_left_are_no_settings() -> None:
    lines = (
        f"{INDUCTOR}deterministic = False",
        f"{INDUCTOR}inplace_buffers = True",
        f"{INDUCTOR}epilogue_fusion = False",
        f"{INDUCTOR}trace.provenance_tracking_level = 1",
        "torch._functorch.config.unlift_effect_tokens = True",
    )
    assert meaningful_config(script(*lines)) == {f"{INDUCTOR}epilogue_fusion": "False"}


def test_a_default_is_that_of_the_version_at_hand() -> None:
    line = f"{INDUCTOR}loop_ordering_after_fusion = False"
    assert meaningful_config(script(line, version="2.9.1+cu128")) == {}
    assert meaningful_config(script(line, version="2.13.0+cpu")) != {}
    assert meaningful_config(script(line, version="2.10.0")) != {}, "nobody looked at 2.10: keep the line"
    assert known_default(f"{INDUCTOR}loop_ordering_after_fusion", None) is None
    assert known_default(f"{INDUCTOR}max_fusion_size", None) == "64"


def test_noise_has_a_reason_and_settings_have_none() -> None:
    assert "debug writer" in (reason_for_noise(f"{INDUCTOR}trace.enabled", "False", "2.13.0") or "")
    assert "default" in (reason_for_noise(f"{INDUCTOR}max_fusion_size", "64", "2.13.0") or "")
    assert reason_for_noise(f"{INDUCTOR}max_fusion_size", "1", "2.13.0") is None
    assert reason_for_noise(f"{INDUCTOR}fx_graph_cache", "False", "2.13.0") is None


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("    reader.tensor(buf0, (4,)  # arg0_1", 18, "was never closed"),
        ("    reader.tensor(buf0, (4,, 5))  # arg0_1", 28, "not valid Python"),
        ("    something_else()", 1, "expected a call of `reader`"),
    ],
)
def test_a_bad_input_line_costs_that_input(line: str, column: int, message: str) -> None:
    read = script(args=line + "\n    reader.symint(7)  # arg1_1")
    (problem,) = read.artifact.problems
    assert problem.location == Location("r.py", 4, column)
    assert message in problem.message
    assert [name for name, _ in read.inputs] == ["arg1_1"]


def test_a_script_cut_off_before_its_model_says_so() -> None:
    read = parse("import torch\n# torch version: 2.13.0\ntorch._inductor.config.max_fusion_size = 1\n", "r.py")
    assert read.config == {f"{INDUCTOR}max_fusion_size": "1"}
    assert [str(problem.location) for problem in read.artifact.problems] == ["r.py:4:1"]


def test_an_empty_script_is_empty() -> None:
    assert parse("", "r.py").artifact.state is ArtifactState.EMPTY


@given(st.text(max_size=150))
def test_any_value_leaves_the_next_setting_alone(value: str) -> None:
    first = "".join(value.splitlines())
    read = script(f"{INDUCTOR}first = {first}", f"{INDUCTOR}second = 2")
    assert read.config[f"{INDUCTOR}second"] == "2"
