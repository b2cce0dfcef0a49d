"""The statements of a C++ wrapper's entry function as the same steps that a Python wrapper has.

torch/_inductor/codegen/cpp_wrapper_cpu.py and cpp_wrapper_gpu.py write them. Up to torch 2.5 tensors are `at::Tensor`
and kernels `at::mm_out`; later, handles and the C shim: `aoti_torch_cpu_mm_out`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from analyzer.artifacts import cpp_forms as forms
from analyzer.artifacts.cpp_kernel import split_top_level
from analyzer.artifacts.kernel_comment import CommentBlock, excerpt_of, read_comment
from analyzer.model import (
    Allocation,
    Free,
    KernelCall,
    KernelDef,
    Location,
    Problem,
    Rename,
    Size,
    Step,
)


@dataclass(slots=True)
class EntryReader:
    """Walks the entry function; `tensors` maps every variable that is a tensor to the buffer whose memory it shows."""

    file: str
    kernels: Mapping[str, KernelDef]
    constants: set[str]
    steps: list[Step] = field(default_factory=list)
    inputs: dict[int, str] = field(default_factory=dict)
    returns: dict[int, str | None] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    tensors: dict[str, str] = field(default_factory=dict)
    arrays: dict[str, str] = field(default_factory=dict)
    pending: CommentBlock = field(default_factory=CommentBlock)
    line: int = 0
    column: int = 1

    def read(self, lines: list[str], first: int) -> None:
        """Read the body's lines; `first` is the number of the first one."""
        self.tensors.update({name: name for name in self.constants})
        index = 0
        while index < len(lines):
            self.line = first + index
            self.column = len(lines[index]) - len(lines[index].lstrip()) + 1
            text = lines[index].strip()
            if text.startswith("//"):
                index += self._comment(lines, index)
                continue
            taken = 1
            while text and not forms.is_complete(text) and index + taken < len(lines) and taken < 200:
                text = f"{text} {lines[index + taken].strip()}"
                taken += 1
            if text and not forms.is_block(text):
                self._statement_line(text, lines[index], taken)
            index += taken

    def _comment(self, lines: list[str], index: int) -> int:
        count = 1
        while index + count < len(lines) and lines[index + count].strip().startswith("//"):
            count += 1
        read = lines[index : index + count]
        self.pending = read_comment(read)
        self.problems += self.pending.problems(self.file, read, range(self.line, self.line + count))
        return count

    def _statement_line(self, text: str, raw: str, taken: int) -> None:
        """One or more statements on a line; a `// reuse` or `// alias` tail speaks of the first."""
        tail = forms.TAIL.search(text)
        first, *others = [
            part.strip() for part in forms.split_statements(forms.TRAILING_COMMENT.sub(";", text)) if part.strip()
        ] or [""]
        known = not first or self._statement(first, tail["kind"] if tail else None)
        for other in others:
            known &= bool(forms.RESET.match(other)) if tail else self._statement(other, None)
        if not known:
            place = self._here()
            message = "expected a statement that the C++ wrapper code generator writes"
            self.problems.append(Problem(place, message, excerpt_of(raw), taken))

    def _statement(self, text: str, tail: str | None) -> bool:
        checked = forms.CHECKED.match(text)
        if checked:
            text = checked["inner"]
        readers = (self._output, self._input, self._declaration, self._reset, self._filler)
        if forms.VIEW_SHIM.match(text):
            return self._call_statement(text, ())
        if any(reader(text) for reader in readers):
            return True
        return self._assignment(text, tail) or self._call_statement(text, ())

    # --------------------------------------------------------------------------------------- declarations, in and out

    def _input(self, text: str) -> bool:
        match = forms.INPUT.match(text) or forms.INPUT_ITEM.match(text)
        if match:
            self.inputs[int(match["index"])] = match["name"]
            if "item" not in text:
                self.tensors[match["name"]] = match["name"]
        constant = forms.CONSTANT.match(text)
        if constant:
            self.tensors[constant["name"]] = constant["name"]
        return bool(match or constant)

    def _output(self, text: str) -> bool:
        match = forms.OUTPUT.search(text)
        if match is None:
            return False
        self.returns[int(match["index"])] = self._base(text.replace(match[0], "")) or None
        return True

    def _declaration(self, text: str) -> bool:
        array = forms.ARRAY.match(text)
        pointers = forms.POINTERS.match(text)
        pointer = forms.POINTER.match(text)
        if array:
            self.arrays[array["name"]] = array["items"].replace("nullptr", "")
        elif pointers:
            self.arrays[pointers["name"]] = pointers["items"]
        elif pointer:
            self._alias(pointer["name"], self._base(pointer["value"]))
        return bool(array or pointers or pointer or self._handle(text) or forms.DECLARED.match(text))

    def _handle(self, text: str) -> bool:
        """`RAIIAtenTensorHandle buf0(buf0_handle)` takes over what a call wrote; or a plain declaration."""
        raii = forms.RAII.match(text) or forms.TENSOR.match(text)
        if raii:
            self.tensors.setdefault(raii["name"], raii["name"])
        return bool(raii)

    def _alias(self, name: str, of: str) -> None:
        if of:
            self.tensors[name] = of

    def _reset(self, text: str) -> bool:
        match = forms.RESET.match(text)
        if match:
            self.steps.append(Free(match["name"] or forms.unhandled(match["handle"]), location=self._here()))
        return bool(match)

    def _filler(self, text: str) -> bool:
        return bool(forms.FILLER.match(text))

    def _here(self) -> Location:
        return Location(self.file, self.line, self.column)

    # ------------------------------------------------------------------------------------------- assignments and calls

    def _assignment(self, text: str, tail: str | None) -> bool:
        match = forms.ASSIGN.match(text)
        if match and self._assigned(match["name"], match["value"], tail):
            return True
        if forms.SCALAR.match(text):
            return True
        return bool(re.match(r"\w+\[\d+\] = \w+$", text))

    def _assigned(self, name: str, value: str, tail: str | None) -> bool:
        call = forms.CALL.match(value)
        if call and forms.EMPTY.match(call["callee"]):
            return self._allocate(name, call["callee"], split_top_level(call["args"]))
        item = forms.ITEM.match(value)
        if item and (item["of"] or item["from"]) in self.tensors:
            return self._rename(name, item["of"] or item["from"], "item")
        if call and "_ops::" in call["callee"]:
            return self._call_statement(value, (name,))
        old = self._base(value)
        if (
            not old
            or value.endswith((".sizes()", ".strides()"))
            or ".item<" in value
            or re.search(r"_size\[\d+\]$", value)
        ):
            return False
        if name.startswith(("var_", "tmp_")):
            self._alias(name, old)
            return True
        return self._rename(name, old, tail or "view")

    def _rename(self, new: str, old: str, kind: str) -> bool:
        self.tensors[new] = new
        self.steps.append(Rename(new, old, kind, location=self._here()))
        self.pending = CommentBlock()
        return True

    def _allocate(self, buffer: str, via: str, args: list[str]) -> bool:
        size, stride, dtype = (
            (4, 5, 2) if via.endswith("alloc_from_pool") else ((0, 1, 2) if "::" in via else (1, 2, 3))
        )
        if len(args) <= max(size, stride, dtype):
            return False
        self.tensors[buffer] = buffer
        self.steps.append(
            Allocation(
                buffer,
                via,
                self._sizes(args[size]),
                self._sizes(args[stride]),
                forms.dtype_of(args[dtype]),
                location=self._here(),
            )
        )
        return True

    def _sizes(self, text: str) -> tuple[Size, ...]:
        """`{8L, 16L}` or the name of an array that holds it."""
        text = text.strip()
        items = self.arrays.get(text, text.strip("{}"))
        return tuple(forms.size_of(item) for item in split_top_level(items) if item.strip())

    def _call_statement(self, text: str, targets: tuple[str, ...]) -> bool:
        match = forms.CALL.match(text)
        if match is None:
            return False
        callee, args = match["callee"], [arg.strip() for arg in split_top_level(match["args"])]
        handles = [forms.unhandled(arg[1:]) for arg in args if arg.startswith("&") and arg.endswith("_handle")]
        if forms.EMPTY.match(callee) and handles:
            return self._allocate(handles[0], callee, args)
        if forms.VIEW_SHIM.match(text):
            return self._view(callee, args)
        launched = self._launched(callee, args)
        if launched:
            name, kind, args = launched
            self._append(name, kind, args, ())
            return True
        if not callee.startswith(("aoti_torch_", "at::", "torch::")):
            return False
        out = callee.endswith("_out")
        self._append(callee, "extern" if out else "fallback", args, targets or tuple(handles) or self._first(args, out))
        return True

    def _first(self, args: list[str], out: bool) -> tuple[str, ...]:
        name = self._base(args[0]) if out and args else ""
        return (name,) if name else ()

    def _view(self, callee: str, args: list[str]) -> bool:
        """A shim call whose last argument becomes another name of the first one's memory."""
        old, new = self._base(args[0]), forms.unhandled(args[-1].lstrip("&"))
        pointer = forms.WORD.findall(args[-1])
        if callee.endswith(("get_data_ptr", "new_tensor_handle")):
            self._alias(pointer[-1] if pointer else new, old)
            return True
        return bool(old) and self._rename(new, old, "view")

    def _launched(self, callee: str, args: list[str]) -> tuple[str, str, list[str]] | None:
        """`K(..)`, `call_K(.., stream, kernels)` or `launchKernel(kernels.K, .., kernel_args_var_0, stream)`."""
        if callee in self.kernels:
            return callee, self.kernels[callee].backend, args
        if callee.startswith("call_") and callee[5:] in self.kernels:
            return callee[5:], "triton", args
        if callee == "launchKernel" and args:
            packed = next((self.arrays[arg] for arg in args if arg in self.arrays), "")
            return re.split(r"\.|->", args[0])[-1], "triton", [item.strip() for item in split_top_level(packed)]
        return None

    def _append(self, callee: str, kind: str, args: list[str], outputs: tuple[str, ...]) -> None:
        block, self.pending = self.pending, CommentBlock()
        comment, handle = block.of_call(owned=block.handle is not None and self._owns(block.handle[0], callee))
        self.tensors.update({name: name for name in outputs})
        self.steps.append(
            KernelCall(
                callee=callee,
                kind=kind,
                args=tuple(args),
                buffers=tuple(self._base(arg) for arg in args),
                outputs=outputs,
                mentions=tuple(
                    dict.fromkeys(
                        name for arg in args for name in self._mentioned(arg) if name not in outputs or "_out" in callee
                    )
                ),
                handle=handle,
                comment=comment,
                location=self._here(),
            )
        )

    def _owns(self, key: str, callee: str) -> bool:
        """Whether a handle's kernel is this callee; torch 2.9 writes `at::_ops::sort_stable::call` for a fallback."""
        return key == callee or (key not in self.kernels and callee not in self.kernels)

    def _mentioned(self, expression: str) -> list[str]:
        words = (forms.unhandled(word) for word in forms.WORD.findall(expression))
        return list(dict.fromkeys(self.tensors[word] for word in words if word in self.tensors))

    def _base(self, expression: str) -> str:
        """The one tensor variable of an expression; "" for none and for lists of several."""
        names = self._mentioned(expression)
        return names[0] if len(names) == 1 else ""
