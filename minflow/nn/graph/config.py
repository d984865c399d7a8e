"""GraphConfig: settings of a graph; GraphModule: settings of one module in it.

All of OneFlow's names exist. Settings without a meaning on a CPU are accepted, stored, and displayed as having no
effect.
Read next: `graph.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.base.errors import DTypeError, GraphError
from ...core.base.placement import Placement
from ...core.mode import MODE, bump_mutations
from ...core.source_location import fail, here, warn
from ...diagnosis.name_suggestions import similar_names
from .parallel.zero import Zero

STYLES = ("seed", "v1")  # of `graph.repr_style`
NO_EFFECT = {  # OneFlow's name -> its purpose there
    "enable_amp": "half precision on a GPU",
    "allow_fuse_model_update_ops": "fused GPU kernels",
    "allow_fuse_add_to_output": "fused GPU kernels",
    "allow_fuse_cast_scale": "fused GPU kernels",
    "set_outputs_buffer_size": "a ring of outputs (here each output is a new array)",
    "enable_cudnn_conv_heuristic_search_algo": "cuDNN",
    "enable_straighten_algorithm": "the order of kernels on a GPU",
    "enable_compress_memory": "GPU memory (here the memory pass always runs)",
    "enable_choose_best_memory_allocation": "GPU memory (here the memory pass always runs)",
    "enable_auto_parallel": "a search for splits over many ranks",
    "enable_auto_parallel_prune_parallel_cast_ops": "a search for splits over many ranks",
    "set_auto_parallel_computation_cost_ratio": "a search for splits over many ranks",
    "set_auto_parallel_wait_time": "a search for splits over many ranks",
    "enable_auto_parallel_trunk_algo": "a search for splits over many ranks",
    "enable_auto_parallel_sbp_collector": "a search for splits over many ranks",
    "enable_auto_memory": "GPU memory (here the memory pass always runs)",
    "enable_multi_tensor_update": "fused GPU kernels",
    "enable_fused_model_update_cast": "fused GPU kernels",
    "enable_xla_jit": "XLA",
    "enable_tensorrt": "TensorRT",
    "enable_openvino": "OpenVINO",
}


class GraphConfig:
    """Settings of one graph: `self.config.set_gradient_accumulation_steps(4)` in its `__init__`.

    A setting may be changed between calls: the next call then uses a plan compiled with it.
    """

    def __init__(self) -> None:
        self.training = False
        self.accumulation = 1
        self.static = False
        self.gradients = True
        self.bits = False
        self.loss_scale: float = 1
        self.zero: Zero | None = None
        self.without_effect: dict[str, tuple] = {}

    def set_gradient_accumulation_steps(self, value: int) -> None:
        """Split a batch into `value` equal parts along axis 0, sum their gradients divided by `value`, and update once.

        Scalar outputs are stacked to shape (value,), others are concatenated along axis 0.
        """
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            hint = "set_gradient_accumulation_steps(4); 1 turns it off"
            fail(GraphError, "the number of gradient accumulation steps is an int of 1 or more", hint, value=value)
        self.change("accumulation", value)

    def enable_zero(
        self, mode: bool = True, *, stage: int = 2, shard_min_size: int = 1024, shard_restore_level: int = 1
    ) -> None:
        """Split the optimizer's work on global parameters over the ranks that hold copies of them (ZeRO).

        stage: 1 splits the states of the optimizer, 2 also the gradients, 3 also the parameters, along dim 0.
        shard_min_size: the fewest elements of a slice; a smaller parameter, or one with a shorter dim 0 than there are
        ranks, stays whole. A split is not undone.  shard_restore_level: OneFlow's, without effect: each op has the
        parameters as its cheapest row needs them. Raises GraphError for another stage or size.
        """
        if stage not in (1, 2, 3):
            fail(GraphError, "the stage of ZeRO is 1, 2 or 3", "enable_zero(True, stage=2)", stage=stage)
        if not isinstance(shard_min_size, int) or isinstance(shard_min_size, bool) or shard_min_size < 1:
            hint = "enable_zero(True, shard_min_size=1024)"
            fail(GraphError, "shard_min_size is an int of 1 or more", hint, shard_min_size=shard_min_size)
        self.change("zero", Zero(stage, shard_min_size) if mode else None)

    def static_inputs(self, mode: bool = True) -> None:
        """Refuse inputs whose specs differ from those of the first call, like OneFlow, instead of compiling again."""
        self.change("static", bool(mode))

    def keep_gradients(self, mode: bool = True) -> None:
        """Keep gradients readable by `graph.grads` after a call (the default).

        Otherwise the memory of a gradient is reused as soon as its parameter is updated.
        """
        self.change("gradients", bool(mode))

    def exact(self, mode: bool = True) -> None:
        """Leave out passes that change the order of computation, so that a call gives the same bits as eager mode.

        Otherwise (the default) results may differ from eager mode by float32 rounding where compiled kernels are used.
        """
        self.change("bits", bool(mode))

    def change(self, name: str, value: Any) -> None:
        if MODE.get().trace is not None:
            what = "the config of a graph is set inside build"
            fail(GraphError, what, "in __init__, or between two calls", value=value)
        if getattr(self, name) != value:
            setattr(self, name, value)
            bump_mutations()

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(f"'GraphConfig' object has no attribute {name!r}")
        raise self.unknown_setting(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in "training accumulation static gradients bits loss_scale zero without_effect".split():
            raise self.unknown_setting(name)
        object.__setattr__(self, name, value)

    def unknown_setting(self, name: str) -> AttributeError:
        from .messages import GraphAttributeError

        ours = "change", "fingerprint", "unknown_setting"
        names = [n for n in dir(type(self)) if not n.startswith("_") and n not in ours]
        near = similar_names(name, names, 1) or similar_names(f"set_{name}", names, 1)
        hint = "config.set_gradient_accumulation_steps(4), config.static_inputs(True)"
        hint, what = f"config.{near[0]}(...)" if near else hint, f"GraphConfig has no setting {name!r}"
        return GraphAttributeError(what, values={"config": self}, where=here(), hint=hint)

    def fingerprint(self) -> dict[str, Any]:
        """Return the settings that a plan depends on."""
        names = {"gradient_accumulation_steps": "accumulation", "keep_gradients": "gradients", "exact": "bits"}
        return {
            name: getattr(self, field) for name, field in (names | {"zero": "zero", "loss_scale": "loss_scale"}).items()
        }

    def __repr__(self) -> str:
        """Return OneFlow's text, with the settings that differ from their defaults."""
        extra = ""
        if self.accumulation > 1:
            extra += f"gradient_accumulation_steps={self.accumulation}, "
        if self.static:
            extra += "static_inputs=True, "
        if not self.gradients:
            extra += "keep_gradients=False, "
        if self.bits:
            extra += "exact=True, "
        if self.loss_scale != 1:
            extra += f"loss_scale={self.loss_scale:g}, "
        if self.zero is not None:
            extra += f"zero_stage={self.zero.stage}, "
        for name in self.without_effect:
            extra += f"{name}=(ignored), "
        return f"GraphConfig(training={self.training}, {extra})"


def ignored_setting(name: str, purpose: str) -> Callable[..., None]:
    """Make the method of a setting that is accepted and ignored, with a warning."""

    def accepted(self: GraphConfig, *args: Any, **kwargs: Any) -> None:
        self.without_effect[name] = (*args, *kwargs.values())
        hint = "leave it out, or keep it for other hardware"
        warn(f"config.{name} has no effect on a CPU; it is for {purpose}", hint)

    accepted.__name__ = accepted.__qualname__ = name
    accepted.__doc__ = f"Accepted; it is for {purpose}."
    return accepted


for each, purpose in NO_EFFECT.items():
    setattr(GraphConfig, each, ignored_setting(each, purpose))


class GraphModule:
    """A handle for settings of a module in graphs: `self.model.block.to(nn.graph.GraphModule).activation_checkpointing
    = True`.

    activation_checkpointing: recompute the module's activations in backward instead of saving them.
    stage_id: the stage of a pipeline that the module is, see `parallel/stages.py`.
    """

    def __init__(self, module: Any):
        self.__dict__["origin"] = module

    @property
    def activation_checkpointing(self) -> bool:
        return bool(self.origin.__dict__.get("_checkpointing", False))

    @activation_checkpointing.setter
    def activation_checkpointing(self, value: bool) -> None:
        if self.activation_checkpointing != bool(value):
            self.origin.__dict__["_checkpointing"] = bool(value)
            bump_mutations()

    @property
    def stage_id(self) -> int | None:
        return self.origin.__dict__.get("_stage")

    @stage_id.setter
    def stage_id(self, number: int) -> None:
        self.set_stage(number)

    def set_stage(self, stage_id: int | None = None, placement: Placement | None = None) -> None:
        """Make the module a stage of a pipeline: with set_gradient_accumulation_steps(n), the ranks of all stages
        compute at the same time, for different parts of the batch.

        stage_id: from 0; None for no stage.  placement: the ranks of the stage, on which `module.to_global` has put its
        parameters; global tensors among the arguments of its forward are boxed to it.
        Raises GraphError for another stage_id, DTypeError for another placement.
        """
        if stage_id is not None and (not isinstance(stage_id, int) or isinstance(stage_id, bool) or stage_id < 0):
            fail(GraphError, "the stage of a pipeline is an int of 0 or more", "set_stage(0)", stage_id=stage_id)
        if placement is not None and not isinstance(placement, Placement):
            hint = 'set_stage(0, flow.placement("cpu", ranks=[0]))'
            fail(DTypeError, "the placement of a stage must be a flow.placement", hint, placement=placement)
        fields = None if placement is None else (placement.type, placement.order, placement.hierarchy)
        self.origin.__dict__.update(_stage=stage_id, _stage_placement=fields)
        bump_mutations()

    def to(self, kind: Any, *args: Any, **kwargs: Any) -> Any:
        """to(nn.Module) returns the module itself; to("cpu") moves it."""
        return self.origin.to(kind, *args, **kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(getattr(type(self), name, None), property):
            fail(GraphError, f"GraphModule has no setting {name!r}", "activation_checkpointing, stage_id", value=value)
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        from .messages import GraphAttributeError

        what = f"{name!r} is not an attribute of the handle for a module's settings in a graph"
        hint = f"the module's own .{name}; or handle.origin.{name}"
        values, hint = {"handle of": type(self.origin).__name__}, "graph.debug(1), for all" if name == "debug" else hint
        raise GraphAttributeError(what, values=values, where=here(), hint=hint)

    def __repr__(self) -> str:
        return f"GraphModule({type(self.origin).__name__}, activation_checkpointing={self.activation_checkpointing})"
