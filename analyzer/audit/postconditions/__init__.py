"""One postcondition per ablation, by name, in the order of the manual."""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.audit.postconditions.further import (
    COMBO_KERNELS,
    DEAD_NODE_ELIMINATION,
    INDEX_PROPAGATION,
    KERNEL_GROUPING,
    LOWERINGS,
    PADDING,
    PROLOGUE_FUSION,
    REDUCTION_UNROLLING,
    SPLIT_REDUCTIONS,
)
from analyzer.audit.postconditions.fusion import (
    EPILOGUE_FUSION,
    FUSION,
    HORIZONTAL_FUSION,
    INLINING_AND_FUSION,
    VERTICAL_FUSION,
)
from analyzer.audit.postconditions.inlining import INLINING, REALIZE_THRESHOLDS
from analyzer.audit.postconditions.kernels import CUDAGRAPHS, MATMUL_TEMPLATES, PARAMETER_FREEZING, VECTORIZATION
from analyzer.audit.postconditions.layout import (
    CAT_AS_POINTWISE,
    LAYOUT_OPTIMIZATION,
    LOOP_LAYOUT_REORDERING,
    PEAK_MEMORY_REORDERING,
)
from analyzer.audit.postconditions.memory import BUFFER_REUSE, INPLACE_BUFFERS, MEMORY_PLANNING
from analyzer.audit.postconditions.record import Arm, Count, Postcondition, Stage
from analyzer.audit.postconditions.rewriting import (
    CONSTANT_FOLDING,
    CSE,
    DECOMPOSITIONS,
    JOINT_GRAPH_PASSES,
    PATTERN_MATCHING,
)

__all__ = ["POSTCONDITIONS", "Arm", "Count", "Postcondition", "Stage"]

_ALL = (
    INLINING,
    FUSION,
    INLINING_AND_FUSION,
    REALIZE_THRESHOLDS,
    VERTICAL_FUSION,
    HORIZONTAL_FUSION,
    EPILOGUE_FUSION,
    LOOP_LAYOUT_REORDERING,
    MATMUL_TEMPLATES,
    PARAMETER_FREEZING,
    PATTERN_MATCHING,
    CUDAGRAPHS,
    CONSTANT_FOLDING,
    DECOMPOSITIONS,
    BUFFER_REUSE,
    INPLACE_BUFFERS,
    MEMORY_PLANNING,
    VECTORIZATION,
    LAYOUT_OPTIMIZATION,
    PEAK_MEMORY_REORDERING,
    CAT_AS_POINTWISE,
    CSE,
    PROLOGUE_FUSION,
    JOINT_GRAPH_PASSES,
    DEAD_NODE_ELIMINATION,
    INDEX_PROPAGATION,
    SPLIT_REDUCTIONS,
    REDUCTION_UNROLLING,
    COMBO_KERNELS,
    PADDING,
    KERNEL_GROUPING,
    LOWERINGS,
)

POSTCONDITIONS: Mapping[str, Postcondition] = {entry.name: entry for entry in _ALL}
