"""IR dumps as users meet them: real files of several torch versions, old forms, damage, and what is no dump at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from analyzer.artifacts import ir_dump
from analyzer.model import ArtifactState, Dep, DumpNode, IrDump, Location, NodeUser, Statement

RUNS = Path(__file__).parents[1] / "fixtures" / "runs"
DUMPS = sorted(RUNS.glob("**/ir_*_fusion.txt"))


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def fixture(run: str, phase: str) -> IrDump:
    (path,) = (RUNS / run).glob(f"**/ir_{phase}_fusion.txt")
    return ir_dump.parse(read(path), path.name)


def everything(nodes: tuple[DumpNode, ...]) -> Iterator[DumpNode]:
    for node in nodes:
        yield node
        yield from everything(node.members)


def node_named(dump: IrDump, name: str) -> DumpNode:
    return next(node for node in everything(dump.nodes) if node.name == name)


NODE = """\
op0: SchedulerNode(ComputedBuffer)
op0.writes = [MemoryDep('buf0', c0, {c0: 64})]
op0.unmet_dependencies = []
op0.met_dependencies = [MemoryDep('arg0_1', c0, {c0: 64})]
op0.outputs = [
    buf0: ComputedBuffer
    buf0.layout = FixedLayout('cpu', torch.float32, size=[8, 8], stride=[8, 1])
    buf0.users = [NodeUser(node=OUTPUT, can_inplace=False, is_weak=False)]
]
op0.group.device = cpu
op0.group.iteration = ((64,), ())
op0.sizes = ([64], [])
arg0_1_layout = FixedLayout('cpu', torch.float32, size=[8, 8], stride=[8, 1])
buf0_layout = FixedLayout('cpu', torch.float32, size=[8, 8], stride=[8, 1])
class op0_loop_body:
    var_ranges = {p0: 64}
    index0 = p0
    def body(self, ops):
        get_index = self.get_index('index0')
        load = ops.load('arg0_1', get_index)
        cos = ops.cos(load)
        get_index_1 = self.get_index('index0')
        store = ops.store('buf0', get_index_1, cos, None)
        return store
"""
EXTERN = """\
op1: ExternKernelSchedulerNode(ExternKernelOut)
op1.writes = [StarDep(name='buf1', mode=None)]
op1.unmet_dependencies = [StarDep(name='buf0', mode=None)]
op1.met_dependencies = []
op1.outputs = [
    buf1: ExternKernelOut
    buf1.layout = FixedLayout('cpu', torch.float32, size=[8, 8], stride=[8, 1])
    buf1.users = []
]
op1.node.kernel = extern_kernels.mm
"""
DUMP = f"{NODE}\n\n{EXTERN}\n\n"


def problems(text: str, source: str = "ir_pre_fusion.txt") -> list[tuple[str, str, int]]:
    found = ir_dump.parse(text, source).artifact.problems
    return [(str(problem.location), problem.message, problem.lines) for problem in found]


# ------------------------------------------------------------------------------------------------------- real files


@pytest.mark.parametrize(
    "path", DUMPS, ids=lambda path: f"{path.relative_to(RUNS).parts[:2]}-{path.parent.name}-{path.name}"
)
def test_every_line_of_a_real_dump_is_understood(path: Path) -> None:
    text = read(path)
    dump = ir_dump.parse(text, "dump")
    assert dump.artifact.problems == ()
    assert dump.artifact.state is (ArtifactState.PARSED if text else ArtifactState.EMPTY)
    assert [node.extra for node in everything(dump.nodes) if node.extra] == []
    assert dump == ir_dump.parse_plain(text, "dump")


def test_there_are_real_dumps_to_test() -> None:
    assert len(DUMPS) >= 30


def test_single_node() -> None:
    dump = fixture("cpu-2.13/c01_pointwise_chain", "post")
    (node,) = dump.nodes
    (buffer,) = node.buffers
    assert (node.name, node.node_class, node.inner) == ("op0", "SchedulerNode", ("ComputedBuffer",))
    assert node.location == Location("ir_post_fusion.txt", 1)
    assert node.distances == (0, 0)
    assert (buffer.name, buffer.users) == ("buf0", (NodeUser("OUTPUT", "OUTPUT"),))
    assert buffer.location == Location("ir_post_fusion.txt", 8, 5)
    assert buffer.layout is not None
    assert buffer.layout.dtype == "torch.float32"
    assert node.body is not None
    assert [statement.op for statement in node.body.statements()][:2] == ["get_index", "load"]
    assert list(node.body.statements())[-1] == Statement(None, "return", ("store",))


def test_scatter_keeps_modes_indirect_indices_and_mutations() -> None:
    dump = fixture("cpu-2.9/c17_gather_index", "post")
    scatter = node_named(dump, "op2")
    assert scatter.writes == (Dep("MemoryDep", "buf2", "c1 + 10*tmp0", (("c0", 10), ("c1", 10)), "atomic_add"),)
    assert Dep("StarDep", "buf1", mode="atomic_add") in scatter.unmet
    assert scatter.buffers[0].mutations == ("buf1",)
    assert scatter.body is not None
    assert Statement("set_indirect0", "set_indirect", ("set_indirect0", "load")) in list(scatter.body.statements())
    assert ("index2", "10*indirect0 + p1") in scatter.body.indices


def test_members_nest_by_owner_not_by_indentation() -> None:
    dump = fixture("cpu-2.5/c48_combo_kernels", "post")
    group = next(node for node in dump.nodes if node.node_class == "ForeachKernelSchedulerNode")
    assert group.inner == tuple(member.node_class for member in group.members)
    assert group.inner[0] == "OuterLoopFusedSchedulerNode"
    assert "_".join(leaf.name for leaf in group.leaves()) == group.name
    assert len(group.members) < len(list(group.leaves()))


def test_cuda_groups_print_numels_and_tuple_sizes() -> None:
    dump = fixture("cuda-2.14.1-a100/foreach", "post")
    op0 = node_named(dump, "op0")
    assert (op0.device, op0.iteration, op0.sizes) == ("cuda:0", "(200, 1)", "((200,), ())")
    assert op0.layouts[0][0] == "arg0_1"
    assert op0.layouts[0][1].size == (10, 20)


def test_symbolic_sizes_stay_text() -> None:
    dump = fixture("cpu-2.13/c29_cond", "post")
    assert [node.name for node in dump.nodes] == ["false_graph_0_op0"]
    assert dump.nodes[0].kernel == "extern_kernels.addmm"
    (path,) = (RUNS / "cpu-2.13/c28_mark_dynamic").glob("**/model__0_forward*/ir_pre_fusion.txt")
    layouts = [buffer.layout for node in ir_dump.parse(read(path), "x").nodes for buffer in node.buffers]
    sizes = {size for layout in layouts if layout and layout.size for size in layout.size}
    assert any(isinstance(size, str) and size.startswith("s") for size in sizes)
    assert any(isinstance(size, int) for size in sizes)


def test_sort_returns_a_tuple_and_multi_outputs_call_nothing() -> None:
    dump = fixture("cpu-2.15/c24_sort_topk", "pre")
    kernels = {node.inner[0]: node.kernel for node in dump.nodes}
    assert kernels["MultiOutput"] is None
    layouts = [buffer.layout for node in dump.nodes for buffer in node.buffers]
    assert any(layout and layout.kind == "MultiOutputLayout" and layout.device == "cpu" for layout in layouts)


# ------------------------------------------------------------------------------------------------- forms of old torch

TORCH_2_0 = """\
buf0: SchedulerNode(ComputedBuffer)
buf0.writes = [MemoryDep(name='buf0', index=384*c0 + c1, size=(s0, 384))]
buf0.unmet_dependencies = []
buf0.met_dependencies = [StarDep(name='arg0_1')]
buf0.group.device = cpu
buf0.group.iteration = ((s0, 384), ())
buf0.sizes = ([s0, 384], [])
class buf0_loop_body:
    var_ranges = {z0: s0, z1: 384}
    index0 = 384*z0 + z1
    def body(self, ops):
        get_index = self.get_index('index0')
        load = ops.load('arg0_1', get_index)
        get_index_1 = self.get_index('index0')
        store = ops.store('buf0', get_index_1, load, None)
        return store


buf2_buf3: FusedSchedulerNode(NoneType)
buf2_buf3.writes = [MemoryDep(name='buf2', index=0, size=())]
buf2_buf3.unmet_dependencies = []
buf2_buf3.met_dependencies = []
    snodes = ['buf2', 'buf3']
"""

TORCH_2_3 = """\
buf0_buf1: FusedSchedulerNode(SchedulerNode,NopKernelSchedulerNode)
buf0_buf1.writes = [MemoryDep('buf0', c0, {c0: 8}), MemoryDep('buf1', c0, {c0: 8})]
buf0_buf1.unmet_dependencies = []
buf0_buf1.met_dependencies = []
buf0_buf1.users = []
    buf0_buf1.snodes[0] =
    buf0: SchedulerNode(ComputedBuffer)
    buf0.writes = [MemoryDep('buf0', c0, {c0: 8})]
    buf0.unmet_dependencies = []
    buf0.met_dependencies = []
    buf0.users = [NodeUser(node=SchedulerNode(name='buf1'), can_inplace=True)]
    buf0.group.device = cuda:0
    buf0.group.iteration = (8, 1)
    buf0.sizes = ([8], [])
    class buf0_loop_body:
        var_ranges = {z0: 8}
        def body(self, ops):
            constant = ops.constant(1.0, torch.float32)
            return constant
    buf0 Triton code:
        @triton.jit
        def triton_(out_ptr0):
            tmp0 = tl.load(out_ptr0)

            x: tl.constexpr(8)
    buf0_buf1.snodes[1] =
    buf1: NopKernelSchedulerNode(ConcatKernel)
    buf1.writes = [WeakDep(name='buf0')]
    buf1.unmet_dependencies = []
    buf1.met_dependencies = []
    buf1.users = [NodeUser(node=OUTPUT, can_inplace=False, is_weak=True)]
"""


def test_torch_2_0_names_members_and_sizes_without_variables() -> None:
    dump = ir_dump.parse(TORCH_2_0, "x")
    assert dump.artifact.problems == ()
    first, fused = dump.nodes
    assert first.writes[0].ranges == (("c0", "s0"), ("c1", 384))
    assert first.met == (Dep("StarDep", "arg0_1"),)
    assert (fused.inner, fused.member_names, fused.members) == (("NoneType",), ("buf2", "buf3"), ())


def test_torch_2_3_indents_members_and_has_no_outputs() -> None:
    dump = ir_dump.parse(TORCH_2_3, "x")
    assert dump.artifact.problems == ()
    (group,) = dump.nodes
    first, second = group.members
    assert first.location == Location("x", 7, 5)
    assert first.buffers[0].users == (NodeUser("SchedulerNode", "buf1", can_inplace=True),)
    assert (first.buffers[0].name, first.buffers[0].ir_class, first.buffers[0].layout) == (
        "buf0",
        "ComputedBuffer",
        None,
    )
    assert second.buffers[0].users == (NodeUser("OUTPUT", "OUTPUT", is_weak=True),)
    assert group.buffers == first.buffers + second.buffers
    assert dump == ir_dump.parse_plain(TORCH_2_3, "x")


def test_annotations_in_triton_code_are_no_headers() -> None:
    assert [node.name for node in ir_dump.parse(TORCH_2_3, "x").leaves()] == ["buf0", "buf1"]


def test_torch_2_5_prints_none_layouts_as_objects_and_a_fourth_field() -> None:
    layout = "<torch._inductor.ir.NoneLayout object at 0x7fc31cf61410>"
    text = EXTERN.replace("FixedLayout('cpu', torch.float32, size=[8, 8], stride=[8, 1])", layout)
    (node,) = ir_dump.parse(
        text.replace("StarDep(name='buf0', mode=None)", "MemoryDep('buf0', 0, {}, None)"), "x"
    ).nodes
    assert node.unmet == (Dep("MemoryDep", "buf0", "0"),)
    assert node.buffers[0].layout is not None
    assert (node.buffers[0].layout.kind, node.buffers[0].layout.text) == ("NoneLayout", layout)


def test_unknown_attributes_classes_and_layouts_are_kept_verbatim() -> None:
    text = EXTERN.replace("FixedLayout('cpu'", "TiledLayout('xpu:1'").replace("(ExternKernelOut)", "(NewKernel)")
    text += "op1.estimated_runtime = {'a': 1,\n    'b': [2]}\nop1.flavour = charm\n"
    (node,) = ir_dump.parse(text, "x").nodes
    assert node.inner == ("NewKernel",)
    assert node.buffers[0].layout is not None
    assert (node.buffers[0].layout.kind, node.buffers[0].layout.device) == ("TiledLayout", "xpu:1")
    assert node.extra == (("estimated_runtime", "{'a': 1,\n    'b': [2]}"), ("flavour", "charm"))


def test_loop_body_forms() -> None:
    body = """\
        masked_subblock1 = self.masked_subblock1(and_, -inf)
        reduction = ops.reduction(torch.int64, torch.float32, 'argmin', (load, index_expr))
        getitem = reduction[0]
        to_dtype = ops.to_dtype(getitem, torch.float32, src_dtype = torch.bool, use_compute_types = True)
        check_bounds = ops.check_bounds(get_index, 64, True, True)
        return None
    def masked_subblock1(self, ops):
        return load
"""
    start, end = NODE.index("        cos ="), NODE.index("        return store")
    (node,) = ir_dump.parse(NODE[:start] + body + NODE[end:].partition("\n")[2], "x").nodes
    assert node.body is not None
    main, masked = node.body.blocks
    assert masked.name == "masked_subblock1"
    assert main.statements[2:] == (
        Statement("masked_subblock1", "masked_subblock", ("masked_subblock1", "and_", "-inf")),
        Statement("reduction", "reduction", ("torch.int64", "torch.float32", "argmin", "(load, index_expr)")),
        Statement("getitem", "getitem", ("reduction", "0")),
        Statement(
            "to_dtype",
            "to_dtype",
            ("getitem", "torch.float32"),
            (("src_dtype", "torch.bool"), ("use_compute_types", "True")),
        ),
        Statement("check_bounds", "check_bounds", ("get_index", "64", "True", "True")),
        Statement(None, "return", ("None",)),
    )


# ------------------------------------------------------------------------------------------------------------- damage


def test_a_bad_line_costs_one_node_and_is_shown_with_its_place() -> None:
    assert problems(DUMP.replace("[MemoryDep('buf0'", "[MemoryDep['buf0'", 1))[0][0] == "ir_pre_fusion.txt:2:45"
    dump = ir_dump.parse(DUMP.replace("op0.sizes = ([64], [])", "op0.sizes = ([64], [)"), "x")
    (problem,) = dump.artifact.problems
    assert (problem.location, problem.lines) == (Location("x", 12, 22), 24)
    assert problem.message == "expected balanced '[]' up to the end of the line"
    assert problem.excerpt == "op0.sizes = ([64], [)"
    assert [node.name for node in dump.nodes] == ["op1"]
    assert dump.artifact.state is ArtifactState.PARTIAL


def test_an_entry_of_another_node_is_not_taken_for_its_own() -> None:
    text = DUMP.replace("op0.group.device", "op7.group.device")
    assert problems(text) == [("ir_pre_fusion.txt:10:1", "expected an entry of op0, found one of op7", 24)]
    text = DUMP.replace("    buf0.users", "    buf1.users")
    assert problems(text) == [("ir_pre_fusion.txt:8:5", "expected an entry of buf0, found one of buf1", 24)]


def test_the_same_shape_before_does_not_hide_damage() -> None:
    assert problems(DUMP) == []
    assert problems(DUMP.replace("op0_loop_body", "op1_loop_body"))[0][0] == "ir_pre_fusion.txt:15:7"


def test_text_between_nodes_costs_no_node() -> None:
    text = DUMP.replace("\n\nop1: ", "\n\nWARNING: something\nelse\n\n\nop1: ")
    assert problems(text) == [("ir_pre_fusion.txt:27:1", "expected a node's header, NAME: CLASS(CLASS)", 2)]
    assert [node.name for node in ir_dump.parse(text, "x").nodes] == ["op0", "op1"]


def test_a_file_cut_inside_a_line() -> None:
    text = NODE[: NODE.index("torch.float32, size=[8, 8], stride=[8, 1])\nclass")]
    ((place, message, lines),) = problems(text)
    assert (place, lines) == ("ir_pre_fusion.txt:14:33", 14)
    assert message.endswith("found the end of the node")


def test_a_file_cut_at_the_end_of_a_line() -> None:
    text = NODE[: NODE.index("class op0")]
    message = "expected the loop body of op0, found the end of the text"
    assert problems(text.rstrip()) == [("ir_pre_fusion.txt:14:76", message, 14)]
    assert problems(f"{text}\n\n") == []


FUSED = f"""\
op0_op1: FusedSchedulerNode(SchedulerNode,ExternKernelSchedulerNode)
op0_op1.writes = []
op0_op1.unmet_dependencies = []
op0_op1.met_dependencies = []
op0_op1.outputs = [
]
op0_op1.snodes[0] =
{NODE}op0_op1.snodes[1] =
{EXTERN}

"""


def test_a_damaged_group_keeps_its_members_together() -> None:
    dump = ir_dump.parse(FUSED.replace("op0_op1.writes = []", "op0_op1.writes = []]"), "x")
    (group,) = dump.nodes
    assert [member.name for member in group.members] == ["op0", "op1"]
    assert group.node_class == "unknown"
    assert [(problem.location.line, problem.lines) for problem in dump.artifact.problems] == [(2, 6)]


def test_members_without_their_group() -> None:
    dump = ir_dump.parse(FUSED[FUSED.index("op0_op1.snodes[0]") :], "x")
    assert [(node.name, len(node.members)) for node in dump.nodes] == [("op0_op1", 2)]
    assert [problem.message for problem in dump.artifact.problems] == ["expected op0_op1 itself before its members"]


def test_a_missing_member_is_noticed() -> None:
    text = FUSED[: FUSED.index("op0_op1.snodes[1]")]
    assert problems(text) == [("ir_pre_fusion.txt:1:1", "expected 2 members of op0_op1, found 1", 0)]


def test_a_damaged_header_of_a_member_leaves_the_member_before_it() -> None:
    dump = ir_dump.parse(FUSED.replace("op1: ExternKernelSchedulerNode", "op1 ExternKernelSchedulerNode"), "x")
    (group,) = dump.nodes
    assert [member.name for member in group.members] == ["op0"]
    assert [problem.lines for problem in dump.artifact.problems] == [11]


def test_two_dumps_in_one_text_are_not_merged() -> None:
    dump = ir_dump.parse(DUMP + DUMP, "x")
    assert [node.name for node in dump.nodes] == ["op0", "op1"]
    assert [problem.message for problem in dump.artifact.problems] == [
        "expected each node once, found op0 again",
        "expected each node once, found op1 again",
    ]
    assert dump.artifact.unparsed_lines == 24 + 10


# ------------------------------------------------------------------------------------------------- what is no dump


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            "PRE-FUSION PRETTY IR\nkernel op3(\n    buf1: f32[4]\n) -> buf3: f32[4]:\n    for p0 in [0, 4):\n",
            "pretty IR",
        ),
        ("kernel op3(\n    buf1: f32[4]\n) -> buf3: f32[4]:\n", "pretty IR"),
        ("<!DOCTYPE html>\n<html><body>op0</body></html>\n", "HTML"),
        ("import torch\n\ndef call(args):\n    pass\n", "Python"),
        ('{"cppCodeToPost": {}}', "JSON"),
        ("\x00\x01\x02PK\x03\x04", "binary"),
        ("hello\n", "not an IR dump"),
    ],
)
def test_other_text_is_named_not_read_as_no_nodes(text: str, cause: str) -> None:
    dump = ir_dump.parse(text, "x")
    assert dump.artifact.state is ArtifactState.UNSUPPORTED
    assert dump.artifact.cause is not None
    assert cause in dump.artifact.cause
    assert dump.artifact.unparsed_lines == sum(bool(line.strip()) for line in text.split("\n"))


def test_an_empty_dump_says_why_it_may_be_empty() -> None:
    dump = ir_dump.parse("", "x")
    assert (dump.artifact.state, dump.nodes) == (ArtifactState.EMPTY, ())
    assert dump.artifact.cause is not None


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("[" + "(" * 5_000 + ")" * 5_000 + "]", 3),
        ("[" + "([" * 5_000, 4),
        ("[" + "a " * 200_000, 4),
        ("[" + "9" * 200_000 + "]", 3),
    ],
    ids=["deep", "open", "long", "number"],
)
def test_absurd_values_end_in_a_problem(value: str, line: int) -> None:
    dump = ir_dump.parse(DUMP.replace("op0.unmet_dependencies = []", f"op0.unmet_dependencies = {value}"), "x")
    assert [node.name for node in dump.nodes] == ["op1"]
    assert [problem.location.line for problem in dump.artifact.problems] == [line]


def test_numbers_of_any_length_and_foreign_characters_do_no_harm() -> None:
    huge = "7" * 5000
    text = DUMP.replace("size=[8, 8]", f"size=[{huge}, \U00020003]", 1)
    dump = ir_dump.parse(text, "x")
    layout = dump.nodes[0].buffers[0].layout
    assert layout is not None
    assert layout.size == (huge, "\U00020003")
    assert dump == ir_dump.parse_plain(text, "x")
