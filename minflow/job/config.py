"""Settings of one job function (`flow.function_config()`) and of the session (`flow.config`).

Every legacy name is accepted; settings that would only change the speed are recorded and shown. An unknown name is an
error that suggests the nearest match. Read next: `function.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.base.errors import JobError
from ..core.context import world
from ..core.source_location import here
from ..core.spec import DType, float32
from ..diagnosis.name_suggestions import similar_names
from ..distributed.world import check_machines, check_port
from .build_context import current
from .checks import dtype_of
from .scope import Placement, View, check_devices, warn_no_gpu
from .session import default_session

# Names of OneFlow 0.3's FunctionConfig that choose how a cluster or a GPU computes, but not the result.
WITHOUT_EFFECT = """
    all_reduce_fp16 all_reduce_group_min_mbyte all_reduce_group_num all_reduce_group_size_warmup all_reduce_lazy_ratio
    allow_cpu_return_op cudnn_buf_limit_mbyte cudnn_conv_enable_pseudo_half cudnn_conv_force_bwd_data_algo
    cudnn_conv_force_bwd_filter_algo cudnn_conv_force_fwd_algo cudnn_conv_heuristic_search_algo
    cudnn_conv_use_deterministic_algo_only default_initializer_conf
    disable_all_reduce_sequence enable_all_reduce_group enable_auto_mixed_precision enable_cudnn
    enable_cudnn_conv_pseudo_half enable_cudnn_fused_normalization_add_relu enable_float_compute_for_half_gemm
    enable_fuse_add_to_output enable_fuse_cast_scale enable_fuse_model_update_ops enable_inplace
    enable_inplace_in_reduce_struct enable_keep_header_only enable_nccl enable_non_distributed_optimizer enable_qat
    enable_quantization_aware_training enable_reuse_mem enable_ssp enable_true_half_config_when_conv
    enable_true_half_config_when_matmul exp_run_conf indexed_slices_optimizer_conf
    non_distributed_optimizer_group_size_mbyte num_gradient_accumulation_steps optimizer_placement_optimization_mode
    optimizer_placement_optimization_threshold prune_cast_to_static_shape_ops prune_parallel_cast_ops
    static_mem_alloc_algo_white_list static_mem_alloc_policy_white_list tensorrt_use_fp16 tensorrt_use_int8
    use_boxing_v2 use_memory_allocation_algorithm_v2 use_nccl_inter_node_communication use_tensorrt use_xla_jit
""".split()
SETTINGS = """
    default_data_type default_logical_view default_distribute_strategy default_placement_scope concurrency_width exact
""".split()
SETTING_GROUPS = {
    "static_mem_alloc_policy_white_list": """
        add remove has policy_mem_size_first policy_mutual_exclusion_first policy_time_line
    """.split(),
    "qat": """
        per_channel_weight_quantization symmetric moving_min_max_momentum moving_min_max_stop_update_after_iters
        target_backend
    """.split(),
    "tensorrt": "use_fp16 use_int8 int8_calibration".split(),
    "train": """
        primary_lr model_update_conf loss_scale_factor secondary_lr weight_l1 bias_l1 weight_l2 bias_l2
    """.split(),
}
REPLACEMENT_HINTS = {
    "train": "flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1])).minimize(loss) inside the job"
}


class SettingGroup:
    """A group of settings, as in `config.qat.symmetric(True)`."""

    def __init__(self, config: FunctionConfig, name: str):
        self.config, self.name = config, name

    def __call__(self, *args: Any) -> None:
        self.config.record(self.name, *args)

    def __getattr__(self, name: str) -> Callable:
        if name[:2] == "__":
            raise AttributeError(name)
        if name not in SETTING_GROUPS[self.name]:
            raise unknown_setting(f"function_config().{self.name}", name, SETTING_GROUPS[self.name])
        if self.name in REPLACEMENT_HINTS:
            what = f"function_config().{self.name}.{name} is from before optimizers of job functions"
            raise JobError(what, where=here(), hint=REPLACEMENT_HINTS[self.name])
        return lambda *args: self.config.record(f"{self.name}.{name}", *args)


class FunctionConfig:
    """Settings of a job function; each is a call: `config.default_data_type(flow.float)`.

    without_effect: name -> its arguments, for settings of cuDNN, NCCL and others that minflow does not use.
    """

    def __init__(self) -> None:
        self.data_type: DType = float32
        self.logical_view = View("consistent")
        self.place: Placement | None = None
        self.depth: int | None = None
        self.bits = False
        self.without_effect: dict[str, tuple] = {}

    view = property(lambda self: self.logical_view.kind, doc='"consistent" or "mirrored".')
    function_desc = property(lambda self: self, doc="Settings by the name that set them.")

    def default_data_type(self, dtype: DType) -> None:
        """Set the dtype of variables whose layer does not choose one."""
        self.data_type = dtype_of("function_config().default_data_type", dtype)

    def default_logical_view(self, view: View) -> None:
        """Set the view: flow.scope.mirrored_view() runs the job once on each device; consistent_view() (the default)
        has one logical tensor.
        """
        if not isinstance(view, View):
            what = "default_logical_view takes a view"
            hint = "flow.scope.mirrored_view() or flow.scope.consistent_view()"
            raise JobError(what, values={"got": repr(view)[:60]}, where=here(), hint=hint)
        self.logical_view = view

    def default_distribute_strategy(self, view: View) -> None:
        """The older name of default_logical_view."""
        self.default_logical_view(view)

    def default_placement_scope(self, place: Placement) -> None:
        """Place the job: flow.scope.placement("gpu", "0:0"), or "0:0-3" for four ranks."""
        if not isinstance(place, Placement):
            what = "default_placement_scope takes a placement"
            hint = 'flow.scope.placement("cpu", "0:0")'
            raise JobError(what, values={"got": repr(place)[:60]}, where=here(), hint=hint)
        self.place = place

    def concurrency_width(self, width: int) -> None:
        """Set the number of steps of this job that may be in flight (2 by default)."""
        if not isinstance(width, int) or isinstance(width, bool) or width < 1:
            what = "concurrency_width must be an integer of at least 1"
            raise JobError(what, values={"got": repr(width)}, where=here(), hint="2, the default")
        self.depth = width

    def exact(self, mode: bool = True) -> None:
        """Skip the passes of compiled kernels that change the order of computation. Results then equal those of eager
        mode bit for bit, if each argument there is `flow.tensor(array)`.
        """
        self.bits = bool(mode)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ("data_type", "logical_view", "place", "depth", "bits", "without_effect"):
            getattr(self, name)  # raises where there is no such setting
            raise assignment_error("function_config()", "config", name, value)
        super().__setattr__(name, value)

    def record(self, name: str, *args: Any) -> None:
        """Record a setting that has no effect."""
        self.without_effect[name] = args

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        if name in SETTING_GROUPS:
            return SettingGroup(self, name)
        if name in WITHOUT_EFFECT:
            return lambda *args: self.record(name, *(args or (True,)))
        raise unknown_setting("function_config()", name, [*WITHOUT_EFFECT, *SETTING_GROUPS, *SETTINGS])

    def __repr__(self) -> str:
        parts = [f"default_data_type={self.data_type.name}", f"default_logical_view={self.logical_view}"]
        parts += [f"default_placement_scope={self.place}"] * (self.place is not None)
        parts += [f"concurrency_width={self.depth}"] * (self.depth is not None) + ["exact=True"] * self.bits
        parts += [f"{name}{arguments} (no effect here)" for name, arguments in self.without_effect.items()]
        return f"FunctionConfig({', '.join(parts)})"


function_config = FunctionConfig


class JobAttributeError(JobError, AttributeError):
    """An unknown setting."""


def assignment_error(owner: str, variable: str, name: str, value: Any) -> JobAttributeError:
    return JobAttributeError(
        f"{owner}.{name} is a method; it cannot be assigned",
        values={"got": repr(value)[:60]},
        where=here(),
        hint=f"{variable}.{name}({value!r:.40})",
    )


def unknown_setting(owner: str, name: str, known: Any) -> JobAttributeError:
    near = similar_names(name, list(known), 3, 0.5)
    return JobAttributeError(
        f"{owner} has no setting {name!r}",
        where=here(),
        hint=f"did you mean {' or '.join(near)}?" if near else "dir(...) lists them",
    )


# ---- flow.config -----------------------------------------------------------------------------------------------------

RECORDED_SETTINGS = """
    collect_act_event collective_boxing comm_net_worker_num compute_thread_pool_size
    disable_group_boxing_by_dst_parallel enable_debug_mode enable_fusion enable_legacy_model_io
    enable_legacy_model_io_enabled enable_model_io_v2 enable_tensor_float_32_compute enable_mem_chain_merge
    enable_numa_aware_cuda_malloc_host grpc_use_no_signal legacy_model_io_enabled max_data_id_length
    max_mdsave_worker_num nccl_num_streams nccl_use_compute_stream num_callback_threads persistence_buf_byte
    rdma_mem_block_mbyte rdma_recv_msg_buf_mbyte reserved_device_mem_mbyte reserved_host_mem_mbyte
    save_downloaded_file_to_local_fs thread_enable_local_message_queue use_rdma
""".split()
SET_BY_METHODS = "cpu_device_num ctrl_port data_port gpu_device_num machine_num".split()


def recorder_of(name: str) -> Callable:
    """Function that records a setting of the session, which has no effect."""

    def recorded(*args: Any) -> None:
        default_session().settings[name] = args[0] if len(args) == 1 else args

    return recorded


class CollectiveBoxing:
    """Settings of NCCL, which are recorded: `flow.config.collective_boxing.nccl_fusion_threshold_mb(8)`."""

    def __getattr__(self, name: str) -> Callable:
        if not name.startswith("nccl_") and name not in ("enable_fusion", "num_callback_threads"):
            raise unknown_setting("flow.config.collective_boxing", name, ["nccl_num_streams", "enable_fusion"])
        return recorder_of(f"collective_boxing.{name}")


class Config:
    """Settings of the session: `flow.config.gpu_device_num(2)`. They may be set at any time.

    A device is a rank of its machine. With one device, the default, each rank runs a job by itself. In a program with
    one rank devices are virtual: a mirrored job runs on each in turn, with its part of the batch.
    """

    def gpu_device_num(self, n: int) -> None:
        """Set the number of devices on each machine; without a GPU they are CPU devices."""
        warn_no_gpu()
        self.devices("gpu_device_num", n)

    def cpu_device_num(self, n: int) -> None:
        """Set the number of devices on each machine. Raises RankError if a program on ranks has fewer of them."""
        self.devices("cpu_device_num", n)

    def machine_num(self, n: int) -> None:
        """State the number of machines. Raises RankError unless the launcher has started ranks on as many."""
        check_machines("flow.config.machine_num", n)
        default_session().settings["machine_num"] = n

    def ctrl_port(self, port: int) -> None:
        """State the port of the master. It is recorded: the launcher connects the ranks."""
        check_port("flow.config.ctrl_port", port)
        default_session().settings["ctrl_port"] = port

    def data_port(self, port: int) -> None:
        """State the port for data. It is recorded: the launcher connects the ranks."""
        check_port("flow.config.data_port", port)
        default_session().settings["data_port"] = port

    def devices(self, name: str, n: int) -> None:
        if not isinstance(n, int) or isinstance(n, bool) or n < 0:
            what = f"flow.config.{name} takes the number of devices"
            raise JobError(what, values={"got": repr(n)}, where=here(), hint=f"flow.config.{name}(2)")
        check_devices(f"flow.config.{name}", n)
        default_session().settings.pop("gpu_device_num", None)
        default_session().settings.pop("cpu_device_num", None)
        default_session().settings[name] = n

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        if name == "collective_boxing":
            return CollectiveBoxing()
        if name not in RECORDED_SETTINGS:
            raise unknown_setting("flow.config", name, [*RECORDED_SETTINGS, *SET_BY_METHODS])

        return recorder_of(name)

    def __setattr__(self, name: str, value: Any) -> None:
        getattr(self, name)  # raises where there is no such setting
        raise assignment_error("flow.config", "flow.config", name, value)

    def __dir__(self) -> list[str]:
        return sorted([*RECORDED_SETTINGS, *SET_BY_METHODS])

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in default_session().settings.items())
        count = default_session().devices
        kind = "virtual CPU device" if world().size == 1 else "device"
        devices = f"{count} {kind}{'s' * (count > 1)}"
        return f"flow.config({shown or 'defaults'}; {devices})"


config = Config()


def enable_eager_execution(enable: bool = True) -> None:
    """Accept and ignore: code outside job functions is always eager, and job functions are always compiled."""


def eager_execution_enabled() -> bool:
    """True outside job functions, while they are built False."""
    return current() is None
