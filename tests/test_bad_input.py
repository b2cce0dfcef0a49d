"""Every kind of bad input to a parser, with the place and the words of its complaint; the rest of the text is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from analyzer.artifacts import fx_graph, ir_dump, output_code, provenance, runnable

DUMP = """\
op0: ExternKernelSchedulerNode(ExternKernelOut)
op0.writes = [StarDep(name='buf0', mode=None)]
op0.unmet_dependencies = []
op0.met_dependencies = [StarDep(name='arg0_1', mode=None)]
op0.outputs = [
    buf0: ExternKernelOut
    buf0.layout = FixedLayout('cpu', torch.float32, size=[8, 8], stride=[8, 1])
    buf0.users = [NodeUser(node=OUTPUT, can_inplace=False, is_weak=False)]
]
op0.node.kernel = extern_kernels.mm


"""
GRAPH = """\
class GraphModule(torch.nn.Module):
    def forward(self, a: "f32[4]"):
        b: "f32[4]" = torch.ops.aten.neg.default(a);  a = None
        return (b,)
"""
CODE = """\
# AOT ID: ['0_inference']
async_compile = AsyncCompile()
# Topologically Sorted Source Nodes: [b], Original ATen: [aten.neg]
cpp_fused_neg_0 = async_compile.cpp_pybinding(['float*'], '''
extern "C" void kernel(float* out_ptr0) {}
''')
async_compile.wait(globals())
def call(args):
    arg0_1, = args
    args.clear()
    cpp_fused_neg_0(arg0_1)
    return (arg0_1, )
def benchmark_compiled_module(times=10, repeat=10):
    return None
"""
WRAPPED = """\
cpp_wrapper_src = (
r'''
#include <torch/csrc/inductor/cpp_wrapper/cpu.h>
void inductor_entry_impl(AtenTensorHandle* input_handles, AtenTensorHandle* output_handles) {
}
'''
)
"""
MAPS = '{"preToPost": {"neg": ["b"]},\n "postToPre": {"b": ["neg"]}}\n'
SCRIPT = """\
import os
os.environ['TORCHINDUCTOR_FREEZING'] = '1'
class Repro(torch.nn.Module):
    pass
def load_args(reader):
    buf0 = reader.storage(None, 16)
    reader.tensor(buf0, (4,), is_leaf=True)  # arg0_1
"""


@pytest.mark.parametrize(
    ("parse", "text", "old", "new", "place", "message"),
    [
        # --------------------------------------------------------------------------------------------------- IR dumps
        (
            ir_dump.parse,
            DUMP,
            "op0.unmet_dependencies = []",
            "op0.unmet_dependencies = []\nop0.unmet_dependencies = []",
            (4, 1),
            "expected the next node, found the same entry of op0 again",
        ),
        (ir_dump.parse, DUMP, "name='arg0_1', ", "", (4, 25), "expected the buffer's name in StarDep"),
        (
            ir_dump.parse,
            DUMP,
            "[StarDep(name='arg0_1', mode=None)]",
            "['arg0_1']",
            (4, 25),
            "expected a dependency such as MemoryDep('buf0', c0, {c0: 8})",
        ),
        (
            ir_dump.parse,
            DUMP,
            "[NodeUser(",
            "[first=NodeUser(",
            (8, 25),
            "expected a list of users, found a value for 'first'",
        ),
        (ir_dump.parse, DUMP, "node=OUTPUT, ", "", (8, 19), "expected NodeUser(node=..., can_inplace=...)"),
        # -------------------------------------------------------------------------------------------------- FX graphs
        (fx_graph.parse, GRAPH, 'a: "f32[4]"', 'a: "f32[4]", 7up', (2, 36), 'expected `name: "annotation"`'),
        (
            fx_graph.parse,
            GRAPH,
            'b: "f32[4]" = ',
            "b is ",
            (3, 9),
            'expected `name: "annotation" = expression`',
        ),
        (fx_graph.parse, GRAPH, "(a);  a", "(a); b;  a", (3, 23), "expected one expression"),
        (fx_graph.parse, GRAPH, "(b,)", "(", (4, 9), "expected the closing bracket of this statement"),
        (
            fx_graph.parse,
            GRAPH,
            GRAPH,
            GRAPH + GRAPH,
            (5, 1),
            "expected one graph with subgraphs inside it, found another class",
        ),
        (
            fx_graph.parse,
            GRAPH,
            GRAPH,
            "# only a comment\n",
            (1, 1),
            "expected `class <name>(torch.nn.Module):` or `def forward(`",
        ),
        # ------------------------------------------------------------------------------------------------ output code
        (output_code.parse, CODE, "\n''')\n", "\n", (4, 62), "expected quotes that end the kernel's source, and `)`"),
        (
            output_code.parse,
            CODE,
            "async_compile.wait(globals())",
            "while True: pass",
            (7, 1),
            "expected a module-level statement that the wrapper code generator writes",
        ),
        (
            output_code.parse,
            CODE,
            CODE,
            CODE + "import antigravity\n",
            (15, 1),
            "expected nothing behind the benchmark code",
        ),
        (output_code.parse, CODE, "['0_inference']", "[0", (1, 12), "expected `AOT ID: ['NAME']`"),
        (
            output_code.parse,
            CODE,
            ", Original ATen: [aten.neg]",
            ", Original",
            (3, 41),
            "expected `Source Nodes: [names], Original ATen: [names]`",
        ),
        (
            output_code.parse,
            CODE,
            "# Topologically Sorted",
            "# [Provenance debug handles] nobody\n# Topologically Sorted",
            (3, 30),
            "expected `[Provenance debug handles] KERNEL:NUMBER`",
        ),
        (
            output_code.parse,
            CODE,
            "    args.clear()\n",
            "    ) no\n" * 30,
            (8, 1),
            "expected Python code: too many lines here do not parse, none is read",
        ),
        (output_code.parse, WRAPPED, "'''\n)\n", "", (2, 5), "expected quotes that end the C++ source"),
        (
            output_code.parse,
            WRAPPED,
            "output_handles) {\n}",
            "output_handles);",
            (4, 1),
            "expected the body of the entry function",
        ),
        # ------------------------------------------------------------------------------------------- maps and scripts
        (
            provenance.parse,
            MAPS,
            "postToPre",
            "preToPost",
            (2, 2),
            "expected each key once, found 'preToPost' again: the last one counts",
        ),
        (
            provenance.parse,
            MAPS,
            "postToPre",
            "toNowhere",
            (2, 2),
            "expected preToPost, postToPre, cppCodeToPost, postToCppCode or version, found 'toNowhere'",
        ),
        (provenance.parse, MAPS, '{"b": ["neg"]}', "7", (2, 2), "expected an object for 'postToPre', found a number"),
        (runnable.parse, SCRIPT, "= '1'", "= 1", (2, 1), "expected `os.environ['NAME'] = 'VALUE'`"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    parse: Callable[[str, str], Any], text: str, old: str, new: str, place: tuple[int, int], message: str
) -> None:
    assert parse(text, "file").artifact.problems == (), "the text is good before it is damaged"
    assert text.count(old) == 1
    problems = parse(text.replace(old, new), "file").artifact.problems
    assert [((p.location.line, p.location.column), p.message) for p in problems][:1] == [(place, message)]
    assert problems[0].excerpt
