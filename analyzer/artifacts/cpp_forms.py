"""The forms that lines of a C++ wrapper's entry function take, up to torch 2.5 (`at::`) and later (the C shim).

torch/_inductor/codegen/cpp_wrapper_cpu.py, cpp_wrapper_gpu.py.
"""

from __future__ import annotations

import re

from analyzer.model import Size

CHECKED = re.compile(r"AOTI_TORCH_ERROR_CODE_CHECK\((?P<inner>.*)\)$", re.DOTALL)
TAIL = re.compile(r";\s*//\s*(?P<kind>reuse|alias)\b.*$")
TRAILING_COMMENT = re.compile(r";\s*//[^\"]*$")
_BLOCK = re.compile(
    r"(?:\}\s*)?(?:if|else|while|for|do)\b.*\{$|\{$|\}+;?$|\}\s*//.*$|\}\s*else\b.*\{$|[^;=]*\)\s*\{$|try\s*\{$"
)
_ONE_LINE_CHECK = re.compile(r"if \(.*\) \{ .* \}$|if \(.*\) (?:break|continue|return);$")
ARRAY = re.compile(
    r"(?:static )?(?:constexpr |const )?int(?:64|32)_t \*?(?P<name>\w+)(?:\[\d*\])? ?= ?\{?(?P<items>[^{}]*)\}?$"
)
POINTERS = re.compile(
    r"(?:void\s?\*|AtenTensorHandle|std::vector<\w+>)\s?(?P<name>\w+)(?:\[\d*\])? ?=? ?\{(?P<items>.*)\}$"
)
INPUT = re.compile(
    r"(?:auto|int64_t|int32_t|double|float|bool) (?P<name>\w+) = (?:std::move\()?inputs\[(?P<index>\d+)\]"
)
INPUT_ITEM = re.compile(r"aoti_torch_item_\w+\(inputs\[(?P<index>\d+)\], &(?P<name>\w+)\)$")
CONSTANT = re.compile(r"(?:\[\[maybe_unused\]\] )?auto&? (?P<name>\w+) = .*constants_->at\(")
OUTPUT = re.compile(r"output_handles\[(?P<index>\d+)\]")
RESET = re.compile(r"(?P<name>\w+)\.reset\(\)$|aoti_torch_delete_tensor_object\((?P<handle>\w+)\)$")
DECLARED = re.compile(r"(?:\[\[maybe_unused\]\] )?(?:static )?(?:const )?[\w:<>*&]+(?:\s[*&])? \w+(?:\[\d*\])?$")
TENSOR = re.compile(r"(?:at::Tensor|RAIIAtenTensorHandle) (?P<name>\w+)(?:\[\d*\])?$")
RAII = re.compile(r"RAIIAtenTensorHandle (?P<name>\w+)\((?P<handle>\w+)\)$")
ASSIGN = re.compile(
    r"(?:(?:auto|decltype\(auto\)|at::Tensor|(?:RAII)?AtenTensorHandle) )?(?P<name>\w+) = (?P<value>.+)$", re.DOTALL
)
SCALAR = re.compile(
    r"(?:const |static |constexpr )*(?:auto|u?int\d+_t|double|float|bool|Grid|CUstream|cudaStream_t) \w+ = "
    r"|RAIIAtenTensorHandle \w+ = scalar_to_tensor_handle\("
)
POINTER = re.compile(r"(?:CUdeviceptr|void\s?\*|auto\*?) (?P<name>\w+) = (?P<value>.*(?:data_ptr|get_data_ptr).*)$")
CALL = re.compile(r"(?P<callee>[\w:.>-]+?)(?:<[^()]*>)?\((?P<args>.*)\)$", re.DOTALL)
EMPTY = re.compile(
    r"(?:at::detail::empty_strided_\w+|aoti_torch_empty_strided\w*|aoti_torch__alloc_from_pool|at::empty\w*)$"
)
ITEM = re.compile(r"std::get<\d+>\((?P<of>\w+)\)$|(?P<from>\w+)\[\d+\]$")
FILLER = re.compile(
    r"assert_|__check_inputs|inputs\.clear|RECORD_FUNCTION|py::gil|AOTI_|TORCH_|std::cout|std::cerr|throw |c10::"
    r"|cuda\w+\(|aoti_torch_(?:item|get|grad|set|create|print|save|device)_|return$|break$|continue$|using |namespace "
    r"|kernels_?(?:\.|->)\w+ = |auto inputs = |(?:\[\[maybe_unused\]\] )?auto&? ?kernels|[\w:]*[Gg]uard[\w:]* "
    r"|ensure_triton_kernel_compiles_started\(|_aoti_(?:aux|current|event)_|std::unique_ptr<[\w:]*StreamGuard>"
)
VIEW_SHIM = re.compile(r"aoti_torch_(?:_reinterpret_tensor|assign_tensors_out|new_tensor_handle|get_data_ptr)\(")
WORD = re.compile(r"[A-Za-z_]\w*")
_DTYPE = re.compile(r"(?:dtype_|at::k)(\w+)")
_AT_DTYPE = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "BFloat16": "bfloat16",
    "ComplexFloat": "complex64",
}


def is_complete(text: str) -> bool:
    """Whether a line ends a statement or opens or closes a block."""
    return bool(
        _BLOCK.match(text) or _ONE_LINE_CHECK.match(text) or text.endswith(";") or TRAILING_COMMENT.search(text)
    )


def split_statements(text: str) -> list[str]:
    """Split at semicolons outside brackets and strings."""
    parts, depth, start = [], 0, 0
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"|[(){}\[\];]', text):
        if token[0] in "({[":
            depth += 1
        elif token[0] in ")}]":
            depth -= 1
        elif token[0] == ";" and depth <= 0:
            parts.append(text[start : token.start()])
            start = token.end()
    return [*parts, text[start:]]


def unhandled(name: str) -> str:
    """The buffer of a raw handle variable: `buf0_handle` → `buf0`."""
    return name.removesuffix("_handle")


def size_of(text: str) -> Size:
    """`16L` as an int; a symbolic size stays text."""
    number = text.strip().removesuffix("LL").removesuffix("L")
    return int(number) if number.isdecimal() and len(number) < 19 else text.strip()


def dtype_of(text: str) -> str | None:
    """`cached_torch_dtype_float32` and `at::kFloat` as torch's name."""
    match = _DTYPE.search(text)
    return f"torch.{_AT_DTYPE.get(match[1], match[1])}" if match else None


def is_block(text: str) -> bool:
    """Whether a line opens or closes a block, or is a check that stands on one line."""
    return bool(_BLOCK.match(text) or _ONE_LINE_CHECK.match(text))
