"""Job functions: OneFlow's API before eager mode, built on the same traces, passes and plans as nn.Graph.

This module maps public names to the modules that define them; each module is imported on first use. Read next:
`function.py` (what a job is), `build.py` (how it is traced), `queue/stream.py` (how it runs), `legacy/overloads.py`
(names that a legacy and a modern function share).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from ..core.base import legacy_dispatch
from ..core.context import SUBMIT
from ..core.messages import suggestions

FLOW = suggestions.by_module({
    "function": "global_function get_variable clear_default_session sync_default_session jobs",
    "run": "start Run",
    "config": "function_config FunctionConfig config",
    ".introspection.job.timeline": "timeline",
    ".introspection.job.blob_watch": "watch watch_diff",
    "saving.manager": "get_all_variables load_variables",
    "legacy.initializers": """constant_initializer zeros_initializer ones_initializer random_uniform_initializer
        random_normal_initializer truncated_normal_initializer truncated_normal variance_scaling_initializer
        glorot_uniform_initializer glorot_normal_initializer xavier_uniform_initializer xavier_normal_initializer
        kaiming_initializer""",
    "legacy.arrays": """reshape_like dynamic_reshape expand_dims broadcast_like reverse slice slice_v2 slice_update
        constant constant_scalar constant_like elem_cnt cast identity identity_n cast_to_static_shape
        sync_dynamic_resize
        amp_white_identity cast_to_current_logical_view parallel_cast count_not_finite multi_count_not_finite assign
        convert_oneflow_dtype_to_numpy_dtype""",
    "legacy.gather": "dim_gather gather_nd scatter_nd tensor_scatter_nd_update tensor_scatter_nd_add",
    "legacy.padding": "pad same_padding constant_pad2d zero_pad2d replication_pad2d reflection_pad2d",
    "legacy.losses": "smooth_l1_loss combined_margin_loss",
    "legacy.math": """broadcast_to_compatible_with clip_by_value in_top_k unsorted_segment_sum
        unsorted_segment_sum_like unsorted_batch_segment_sum""",
}) | {
    "enable_eager_execution": "config.enable_eager_execution",
    "eager_execution_enabled": "config.eager_execution_enabled",
    "range": "legacy.arrays.range_of",
    "clip_by_scalar": "legacy.math.clip_by_value",
    "scope": "scope.",
    "optimizer": "train.optimizer.",
    **{name: f"legacy.{name}." for name in ("layers", "math", "regularizers", "distribute", "random", "unittest")},
}  # fmt: skip
GROUPS = {
    "train": suggestions.by_module({"saving.manager": "CheckPoint SimpleCheckPointManager"}),
    "checkpoint": suggestions.by_module({"saving.manager": "get save"}),
}
NN = suggestions.by_module(
    {
        "legacy.nn": """batch_normalization bias_add dropout fused_bias_add_dropout fused_bias_add_gelu
        fused_self_attention_query_mul_key_and_value elu hardsigmoid hardswish hardtanh layer_norm leaky_relu
        logsoftmax mish moments random_mask_like relu relu6 softmax swish""",
        "legacy.windows": """avg_pool1d avg_pool2d avg_pool3d compat_conv2d conv1d conv2d conv2d_transpose conv3d
        max_pool1d max_pool2d max_pool3d tf_conv2d""",
        "legacy.losses": """distributed_sparse_softmax_cross_entropy_with_logits sigmoid_cross_entropy_with_logits
        softmax_cross_entropy_with_logits sparse_cross_entropy sparse_softmax_cross_entropy_with_logits""",
    }
) | {
    "PixelShufflev2": "legacy.losses.pixel_shuffle_v2",
}


class LazyNames(Mapping):
    """Public names, each imported on first access. paths: name -> "module.name" in this package, "module." for the
    module itself, or a nested table of such paths.
    """

    def __init__(self, paths: Mapping[str, Any]):
        self.paths = paths

    def __getitem__(self, name: str) -> Any:
        path = self.paths[name]
        if not isinstance(path, str):
            return SimpleNamespace(**LazyNames(path))
        module, _, attribute = path.rpartition(".")
        home = importlib.import_module(f".{module}", __name__)
        return getattr(home, attribute) if attribute else home

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)


def replacement(space: str, name: str) -> str | None:
    """Suggested replacement for a legacy name that minflow does not have, or None."""
    from .legacy.missing import MISSING

    return MISSING.get(space, {}).get(name)


def find_overload(name: str, args: tuple, kwargs: Mapping[str, Any]) -> Callable | None:
    """The legacy function if this call of an overloaded name selects it, else None."""
    from .legacy.overloads import legacy_meaning

    return legacy_meaning(name, args, kwargs)


def submit_graph(graph: Any, args: tuple, kwargs: dict) -> Any:
    """The function behind `graph.submit`."""
    from .graphs.graph_job import GraphJob

    return GraphJob(graph).call(args, kwargs)


legacy_dispatch.RESOLVERS[:], SUBMIT[:] = [find_overload], [submit_graph]
suggestions.LEGACY_NAMES["flow"], suggestions.LEGACY_NAMES["flow.nn"] = LazyNames(FLOW | GROUPS), LazyNames(NN)
suggestions.REPLACEMENTS[:] = [replacement]
