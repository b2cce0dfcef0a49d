"""Comment lines above kernels and calls, all versions, and where a malformed one is reported."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.artifacts.kernel_comment import read_comment


def test_triton_comment_of_torch_2_9_and_later_keeps_pre_grad_and_post_grad_names_apart() -> None:
    block = read_comment(
        [
            "# kernel path: /tmp/x/cabc.py",
            "# Topologically Sorted Source Nodes: [y, layer_norm], Original ATen: [aten.add, aten.native_layer_norm]",
            "# Source node to ATen node mapping:",
            "#   layer_norm => add_1, rsqrt",
            "#   y => add",
            "# Graph fragment:",
            '#   %arg0_1 : Tensor "f32[8, 4][4, 1]cuda:0" = PlaceHolder[target=arg0_1]',
            '#   %add : Tensor "f32[8, 4][4, 1]cuda:0"[num_users=2] = call_function[target=torch.ops.aten.add.Tensor]'
            "(args = (%arg0_1, 1), kwargs = {})",
            "#   %var_mean : [num_users=2] = call_function[target=torch.ops.aten.var_mean.correction]"
            "(args = (%add, [1]), kwargs = {correction: 0, keepdim: True})",
            "#   return %getitem_1,%buf1,%add_1",
        ]
    )
    comment = block.comment
    assert comment.source_nodes == ("y", "layer_norm")
    assert comment.original_aten == ("aten.add", "aten.native_layer_norm")
    assert comment.node_map == (("layer_norm", ("add_1", "rsqrt")), ("y", ("add",)))
    assert comment.placeholders == ("arg0_1",)
    assert comment.fragment == ("add", "var_mean")
    assert comment.returns == ("getitem_1", "buf1", "add_1")
    assert block.bad == ()


def test_fragment_without_types_and_without_return_line() -> None:
    comment = read_comment(
        [
            "# Graph fragment:",
            "#   %relu : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%mm,), kwargs = {})",
        ]
    ).comment
    assert comment.fragment == ("relu",)
    assert comment.returns is None


def test_a_buffer_without_layout_is_loaded_too() -> None:
    """What a call writes into another buffer has a name of its own, and no sizes (torch 2.9 and later)."""
    block = read_comment(["# Graph fragment:", "#   %buf4 : Tensor  = PlaceHolder[target=buf4]", "#   return %buf5"])
    assert block.bad == ()
    assert (block.comment.placeholders, block.comment.returns) == (("buf4",), ("buf5",))


@pytest.mark.parametrize("kind", ["Topologically Sorted Source Nodes", "Unsorted Source Nodes", "Source Nodes"])
def test_nameless_source_nodes_are_left_out(kind: str) -> None:
    comment = read_comment([f"    // {kind}: [cond, x, , t], Original ATen: []"]).comment
    assert comment.source_nodes == ("cond", "x", "t")
    assert comment.original_aten == ()


@pytest.mark.parametrize(
    ("line", "handle"),
    [
        ("# [Provenance debug handles] cpp_fused_cos_0:12", ("cpp_fused_cos_0", 12)),
        ("# [Provenance debug handles] extern_kernels.mm:3", ("extern_kernels.mm", 3)),
        ("    // [Provenance debug handles] at::_ops::sort_stable::call:4", ("at::_ops::sort_stable::call", 4)),
    ],
)
def test_debug_handle_is_the_number_behind_the_last_colon(line: str, handle: tuple[str, int]) -> None:
    assert read_comment([line]).handle == handle


def test_handle_of_another_kernel_takes_its_source_nodes_away_from_the_call() -> None:
    block = read_comment(["# Source Nodes: [y], Original ATen: [aten.mm]", "# [Provenance debug handles] a:1"])
    assert block.of_call(owned=True) == (block.comment, 1)
    assert block.of_call(owned=False)[1] is None
    assert block.of_call(owned=False)[0].source_nodes == ()


def test_aot_id() -> None:
    assert read_comment(["# AOT ID: ['3_backward']"]).aot_id == "3_backward"


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("    # Topologically Sorted Source Nodes: y]", 42),
        ("# Source Nodes: [a, b", 22),
        ("#   %add = call_function", 3),
        ("# [Provenance debug handles] cpp_fused", 30),
        ("#   return add", 12),
    ],
)
def test_malformed_line_is_reported_where_it_goes_wrong(line: str, column: int) -> None:
    (bad,) = read_comment(["# Graph fragment:", line]).bad
    assert (bad.index, bad.column) == (1, column)
    assert bad.message.startswith("expected ")


def test_a_malformed_line_costs_only_itself() -> None:
    block = read_comment(
        [
            "# Topologically Sorted Source Nodes: [y], Original ATen: [aten.mm]",
            "# [Provenance debug handles] broken",
            "#   return %mm",
        ]
    )
    assert block.comment.source_nodes == ("y",)
    assert block.comment.returns == ("mm",)
    assert [bad.index for bad in block.bad] == [1]


def test_other_comments_mean_nothing() -> None:
    assert read_comment(["# buffer buf1 (op: torch.ops.aten.sort.stable) is assumed to be not aligned", "#"]).bad == ()


@given(
    st.lists(st.text(alphabet="#/ %:[],=>ab1'\"Source Nodes:return[Provenance debug handles]", max_size=60), max_size=6)
)
def test_any_comment_text_is_read_or_reported(lines: list[str]) -> None:
    given_lines = [f"# {line}" for line in lines]
    for bad in read_comment(given_lines).bad:
        assert 0 <= bad.index < len(given_lines)
        assert 1 <= bad.column <= len(given_lines[bad.index]) + 1
