"""Provenance records of all versions, and what is said of damaged ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.artifacts.provenance import parse, split_handle, with_stacks
from analyzer.model import ArtifactState

RUNS = Path(__file__).parent.parent / "fixtures/runs"
FILES = sorted(RUNS.glob("**/inductor_provenance_tracking_node_mappings.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parts[-6])
def test_every_fixture_is_read_whole(path: Path) -> None:
    read = parse(path.read_text(), path.name)
    raw = json.loads(path.read_text())
    assert read.artifact.state is ArtifactState.PARSED
    assert {key: list(value) for key, value in read.kernel_to_post.items()} == raw["cppCodeToPost"]
    assert {key: list(value) for key, value in read.pre_to_post.items()} == raw["preToPost"]
    assert {key: list(value) for key, value in read.post_to_pre.items()} == raw["postToPre"]
    assert {key: list(value) for key, value in read.post_to_kernel.items()} == raw["postToCppCode"]


def test_a_training_forward_of_2_13_has_handles() -> None:
    (path,) = RUNS.glob("cpu-2.13/c11_mlp_train/**/model__0_forward_1.0/inductor_provenance*.json")
    read = parse(path.read_text(), path.name)
    assert set(read.kernel_to_post["extern_kernels.addmm:1"]) == {"addmm"}
    assert read.pre_to_post["h"] == ("relu",)
    assert read.version is None


def test_a_lazily_compiled_backward_has_only_a_version() -> None:
    read = parse('{"version": 2.0}\n', "inductor_provenance_tracking_node_mappings")
    assert (read.version, read.kernel_to_post, read.artifact.problems) == ("2.0", {}, ())


def test_maps_without_handles_and_without_kernels() -> None:
    text = '{"cppCodeToPost": {}, "postToCppCode": {}, "postToPre": {"mul": ["y"]}, "preToPost": {"y": ["mul"]}}'
    read = parse(text, "p.json")
    assert (read.post_to_pre, read.kernel_to_post) == ({"mul": ("y",)}, {})


def test_plain_maps_are_told_apart_by_name_and_content() -> None:
    stacks = '{"k:1": ["  File \\"/f.py\\", line 3, in f\\n    x.sin()\\n"]}'
    assert parse(stacks, "record").kernel_stacks == {"k:1": ('  File "/f.py", line 3, in f\n    x.sin()\n',)}
    assert parse('{"k:1": []}', "inductor_provenance_tracking_kernel_stack_traces").kernel_stacks == {"k:1": ()}
    nodes = parse('{"triton_poi_fused_0": ["sin", "cos"]}', "inductor_triton_kernel_to_post_grad_nodes.json")
    assert nodes.kernel_to_post == {"triton_poi_fused_0": ("sin", "cos")}
    both = with_stacks(parse('{"preToPost": {"y": ["mul"]}}', "p"), parse(stacks, "s"))
    assert both.pre_to_post == {"y": ("mul",)}
    assert list(both.kernel_stacks) == ["k:1"]


def test_the_nested_record_of_2_6_is_unsupported() -> None:
    read = parse('{"mul": [{"name": "y"}]}', "inductor_post_to_pre_grad_nodes.json")
    assert read.artifact.state is ArtifactState.UNSUPPORTED
    assert "2.6" in (read.artifact.cause or "")


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ('{"preToPost": {"a": ["b"]}', "p.json:1:27", "Expecting ',' delimiter"),
        ("{\"preToPost\":\n {'a': 1}}", "p.json:2:3", "Expecting property name"),
        ("[" * 100_000, "p.json:1:1", "nested too deeply"),
        ('{"preToPost": ' * 50_000, "p.json:1:1", "nested too deeply"),
        ("9" * 5000, "p.json:1:1", "expected JSON"),
        ("[1]", "p.json:1:1", "expected a JSON object"),
        ('{"postToPre": {},\n  "preToPost": 3}', "p.json:2:3", "expected an object for 'preToPost', found a number"),
        ('{"preToPost": {"a": ["b"],\n "c": "d"}}', "p.json:2:2", "list of names for 'c', found a string"),
        ('{"preToPost": {"a": ["b", null]}}', "p.json:1:16", "list of names for 'a', found a list with other items"),
        ('{"preToPost": {"a": ["b"]}, "new": {}}', "p.json:1:29", "found 'new'"),
        ('{"preToPost": {"a": ["b"],\n   "a": ["c"]}}', "p.json:2:4", "found 'a' again"),
    ],
)
def test_damage_is_named_with_its_place(text: str, place: str, message: str) -> None:
    (problem,) = parse(text, "p.json").artifact.problems
    assert str(problem.location) == place
    assert message in problem.message


def test_a_wrong_entry_costs_only_itself() -> None:
    read = parse('{"preToPost": {"a": 1, "b": ["c"]}, "postToPre": {"c": ["b"]}}', "p.json")
    assert (read.pre_to_post, read.post_to_pre) == ({"b": ("c",)}, {"c": ("b",)})
    assert read.artifact.state is ArtifactState.PARTIAL


def test_an_empty_file_is_empty() -> None:
    assert parse(" \n", "p.json").artifact.state is ArtifactState.EMPTY


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        ("triton_poi_fused_0:12", ("triton_poi_fused_0", 12)),
        ("extern_kernels.mm", ("extern_kernels.mm", None)),
        ("at::_ops::sort_stable::call:7", ("at::_ops::sort_stable::call", 7)),
        ("at::_ops::7", ("at::_ops::7", None)),
    ],
)
def test_handles(key: str, parts: tuple[str, int | None]) -> None:
    assert split_handle(key) == parts


NAMES = st.dictionaries(st.text(), st.lists(st.text()))


@given(NAMES, NAMES)
def test_maps_come_back_as_written(pre: dict[str, list[str]], kernels: dict[str, list[str]]) -> None:
    read = parse(json.dumps({"preToPost": pre, "cppCodeToPost": kernels}), "p.json")
    assert read.pre_to_post == {key: tuple(value) for key, value in pre.items()}
    assert read.kernel_to_post == {key: tuple(value) for key, value in kernels.items()}
    assert read.artifact.problems == ()


@given(st.text())
def test_any_text_is_answered(text: str) -> None:
    read = parse(text, "p.json")
    assert read.artifact.state in (ArtifactState.PARSED, ArtifactState.PARTIAL, ArtifactState.EMPTY)
