"""Alias module paths that PyTorch and OneFlow programs import from, such as `minflow.nn.modules.batchnorm`.

ALIASES maps an alias to one of our modules (the same object) or, after a colon, to an attribute of it. MERGED maps an
alias to several modules and resolves their names lazily. `AliasFinder` comes first on `sys.meta_path`: otherwise the
package's own path would import each file below "compatible.single_client" a second time.
Read next: `core/messages/unsupported.py`, the names that are missing on purpose.
"""

from __future__ import annotations
import __future__

import importlib
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

from .core.base.errors import MissingModuleError
from .core.messages import suggestions
from .core.messages.unsupported import IMPORTED_NAMESPACES, IMPORTED_TYPES, reason, substitute
from .core.source_location import here

ROOT = __name__.rpartition(".")[0]
ALIASES = {
    **{name: f"compat.namespaces.{name}" for name in """accelerator backends comm jit mps
    multiprocessing overrides types version""".split()},
    **{f"{name}.config": "compat.namespaces.backends:compiler" for name in ("jit", "_dynamo", "_inductor", "compiler")},
    "jit.annotations": "compat.namespaces.jit",
    **{f"_dynamo.{name}": f"compat.namespaces.jit:{name}" for name in "disable is_compiling reset".split()},
    **{f"_dynamo.{name}": "compat.namespaces.jit:do_nothing"
       for name in "graph_break mark_dynamic maybe_mark_dynamic mark_static mark_static_address".split()},
    **{f"{space}.{name}": "compat.namespaces.jit:unused"
       for space in ("_dynamo", "compiler") for name in ("allow_in_graph", "assume_constant_result")},
    "distributed.constants": "distributed.collectives",
    **{name: f"compat.torch_classes:{name.rpartition('.')[2]}" for name in """jit.ScriptFunction jit.ScriptModule
       _dynamo.OptimizedModule _dynamo.eval_frame.OptimizedModule""".split()},
    **{f"distributed.{space}.{name}": f"compat.torch_classes:{name}" for name in ("Partial", "Replicate", "Shard")
       for space in ("tensor", "tensor.placement_types", "_tensor", "_tensor.placement_types")},
    "nn.modules.module._IncompatibleKeys": "nn.state:Incompatible",
    "autograd.profiler.emit_nvtx": "compat.torch_classes:emit_nvtx",
    **{f"distributed.algorithms.{name}": "compat.torch_classes:Join" for name in ("Join", "join.Join")},
    "DeviceObjType": "core.spec:Device", "PyTorchFileReader": "compat.torch_classes:PyTorchFileReader",
    "fx.wrap": "compat.namespaces.jit:unused",
    "fx.GraphModule": "compat.torch_classes:GraphModule", "ScriptModule": "compat.torch_classes:ScriptModule",
    **{f"backends.{name}": f"compat.namespaces.backends:{name}"
       for name in "cuda cudnn mkl mkldnn mps openmp opt_einsum".split()},
    "ops": "core.grad.registered:ops",
    **{f"_C.{name}": "core.overrides:DisableTorchFunctionSubclass"
       for name in ("DisableTorchFunction", "DisableTorchFunctionSubclass")},
    **{f"_C._disabled_torch_{name}_impl": "core.overrides:disabled_torch_function_impl"
       for name in ("function", "dispatch")},
    "_C._is_torch_function_enabled": "core.overrides:is_enabled",
    **{f"compiler.{name}": f"compat.namespaces.jit:{name}" for name in "compile disable is_compiling reset".split()},
    **{f"compiler.{name}": "compat.namespaces.jit:is_tracing" for name in "is_dynamo_compiling is_exporting".split()},
    "compiler.cudagraph_mark_step_begin": "compat.namespaces.jit:reset",
    "random.fork_rng": "compat.namespaces.threads:fork_rng",
    **{name: f"core.functions.storages:{name}" for name in ("TypedStorage", "UntypedStorage")},
    "__config__": "compat.namespaces.config", "xpu": "compat.namespaces.mps",
    "utils.tensorboard.writer": "utils.tensorboard", "utils.tensorboard.summary": "utils.tensorboard:summary",
    "hub": "io.hub", "utils.model_zoo": "io.hub",
    "autograd.graph": "core.grad.saved_tensors",
    "autograd.function": "core.grad.function", "autograd.autograd_function": "core.grad.function",
    "autograd.autograd_mode": "core.grad.modes", "comm.comm_ops": "compat.namespaces.comm",
    "comm.primitive": "compat.namespaces.comm", "framework.docstr": "", "utils.vision.transforms": "vision.transforms",
    "utils.vision": "vision", "autograd.functional": "core.grad.functional",
    "autograd.grad_mode": "core.grad.modes", "autograd.anomaly_mode": "core.grad.modes",
    "cuda.amp": "amp", "cuda.random": "cuda", "compatible.single_client": "",
    "experimental.nn": "nn", "experimental.optim": "optim",
    "_tensor": "core.tensor", "torch": "",
    "random": "job.legacy.random", "unittest": "job.legacy.unittest",
    "nn.graph.graph_config": "nn.graph.config", "nn.graph.graph_block": "nn.graph.config",
    "nn.modules.module": "nn.module", "nn.modules.container": "nn.containers",
    "cpu": "compat.namespaces.cpu", "cpu.amp": "amp", "distributed.nn.functional": "distributed.nn",
    "nn.parallel.distributed": "nn.parallel",
    "nn.utils.convert_parameters": "nn.utils.convert",
    "utils.hooks": "nn.hooks", "utils.flop_counter": "nn.flop_counter",
    "utils.data.dataloader": "utils.data.loader", "utils.data.distributed": "utils.data.sampler",
    "utils.data._utils": "utils.data", "utils.data._utils.collate": "utils.data.collate",
    "utils.data._utils.worker": "utils.data.fetch",
}  # fmt: skip
# Old names of modules that published lessons and reading tours import.
RENAMED = {
    "machine": "platforms.compiled",
    "core.door": "core.dispatch",
    "core.where": "core.source_location",
    "diagnosis.would_fit": "diagnosis.shape_suggestions",
    "headless": "run_notebook",
}
ALIASES.update(RENAMED)
MERGED = {
    **{f"nn.modules.{name}": ("nn", "nn.functional") for name in """activation adaptive batchnorm channelshuffle conv
        distance dropout flatten fold instancenorm lazy linear loss normalization padding pixelshuffle pooling rnn
        sparse transformer upsampling norm interpolate math_ops reshape dataset fused_batch_norm
        batchnorm_fused""".split()},
    **{f"distributions.{name}": ("distributions",) for name in """bernoulli beta binomial categorical cauchy chi2
        continuous_bernoulli dirichlet exp_family exponential fishersnedecor gamma generalized_pareto geometric gumbel
        half_cauchy half_normal independent inverse_gamma kl kumaraswamy laplace log_normal logistic_normal
        lowrank_multivariate_normal mixture_same_family multinomial multivariate_normal negative_binomial
        one_hot_categorical pareto poisson relaxed_bernoulli relaxed_categorical studentT transformed_distribution
        uniform von_mises weibull wishart lkj_cholesky""".split()},
    **{f"nn.optimizer.{name}": ("optim", "optim.lr_scheduler") for name in """adagrad adam adamw lamb lbfgs optimizer
        rmsprop sgd chained_scheduler constant_lr cosine_annealing_lr cosine_annealing_warm_restarts cosine_decay_lr
        cyclic_lr exponential_lr lambda_lr linear_lr multiplicative_lr multistep_lr polynomial_lr
        reduce_lr_on_plateau sequential_lr step_lr warmup_lr""".split()},
    "nn.modules": ("nn",), "nn.optimizer": ("optim",), "nn.optimizer.lr_scheduler": ("optim.lr_scheduler",),
    "_C": ("compat.functional_api.reordered", "compat.functional_api.fused", "nn.functional", "", "linalg"),
    "_C._nn": ("nn.functional",), "_VF": ("", "nn.functional"),
    "_oneflow_internal": ("", "nn.functional"), "_utils": ("",), "functional": ("",),
    "storage": ("core.functions.storages", ""),
    "vision.models._api": ("vision.models",), "vision.ops.misc": ("vision.ops",), "vision.ops.boxes": ("vision.ops",),
    "vision.transforms.v2": ("vision.transforms",),
    "vision.transforms.v2.functional": ("vision.transforms.functional",),
    "autograd.variable": ("autograd",), "autograd.profiler": ("profiler",), "profiler.profiler": ("profiler",),
    "utils.benchmark.utils": ("utils.benchmark",), "utils.benchmark.utils.timer": ("utils.benchmark",),
    "utils.benchmark.utils.common": ("utils.benchmark",), "utils.benchmark.utils.compare": ("utils.benchmark",),
    "amp.autocast_mode": ("amp",), "amp.grad_scaler": ("amp",),
    "compatible": ("",), "experimental": ("",), "framework": ("",), "framework.tensor": ("",), "framework.dtype": ("",),
    "nn.utils.stateless": ("func",), "serialization": ("io",), "torch_version": ("version",),
}  # fmt: skip
# Base classes and helpers that PyTorch names with an underscore, mostly imported for isinstance -> their path here.
NAME_ALIASES = {
    "_BatchNorm": "nn.modules.norm.BatchNorm", "_NormBase": "nn.modules.norm.BatchNorm",
    "_InstanceNorm": "nn.modules.instance_norm.InstanceNorm",
    "_ConvNd": "nn.modules.conv.Convolution", "_ConvTransposeNd": "nn.modules.conv_transpose.ConvTranspose",
    "_MaxPoolNd": "nn.modules.pooling.MaxPool", "_AvgPoolNd": "nn.modules.pooling.AvgPool",
    "_LPPoolNd": "nn.modules.pooling.LPPool", "_AdaptiveAvgPoolNd": "nn.modules.adaptive_pooling.AdaptiveAvgPool",
    "_AdaptiveMaxPoolNd": "nn.modules.adaptive_pooling.AdaptiveMaxPool",
    "_MaxUnpoolNd": "nn.modules.adaptive_pooling.MaxUnpool", "_DropoutNd": "nn.modules.dropout.DropoutNd",
    "_ConstantPadNd": "nn.modules.padding.ConstantPad", "_LazyNormBase": "nn.modules.lazy.LazyNorm",
    "_Loss": "nn.modules.loss.Loss", "_WeightedLoss": "nn.modules.loss.WeightedLoss",
    **{name: f"nn.utils.convert.{name}" for name in ("_flatten_dense_tensors", "_unflatten_dense_tensors")},
    "WeightsEnum": "vision.models.weights.Weights", "_TensorMeta": "compat.torch_classes.TensorMeta",
    **{name: f"compat.torch_functions.{name}" for name in ("_log_api_usage_once", "_parse_to")},
    **dict.fromkeys("""_mps_is_available _cuda_isInBadFork _is_tracing
        _are_functorch_transforms_active""".split(), "compat.namespaces.mps.is_available"),
    **dict.fromkeys("""_jit_set_profiling_mode _jit_set_profiling_executor _jit_set_texpr_fuser_enabled
        _jit_set_nvfuser_enabled _jit_set_autocast_mode _jit_set_fusion_strategy _jit_set_bailout_depth
        _jit_set_num_profiled_runs _jit_set_inline_everything_mode _jit_override_can_fuse_on_cpu
        _jit_override_can_fuse_on_gpu _cuda_clearCublasWorkspaces _get_tracing_state""".split(),
        "compat.namespaces.jit.do_nothing"),
    "legacy_contiguous_format": "core.functions.memory_format.contiguous_format",  # in copies of F.gumbel_softmax
    "_BaseDataLoaderIter": "compat.torch_classes.DataLoaderIterator",
    "_SingleProcessDataLoaderIter": "compat.torch_classes.DataLoaderIterator",
    "_MultiProcessingDataLoaderIter": "compat.torch_classes.WorkerIterator",
    "_get_clones": "nn.modules.transformer.clones", "_get_activation_fn": "nn.modules.transformer.activation_function",
    "_reduction": "compat.private_names._Reduction", "_Reduction": "compat.private_names._Reduction",
    **{f"_no_grad_{name}": f"nn.init.{name}" for name in "normal_ uniform_ trunc_normal_".split()},
    **{name: f"compat.private_names.{name}" for name in """_softmax _log_softmax _shape_as_tensor _weight_norm
       _check""".split()},
    **{name: f"nn.modules.utils.{name}" for name in "_ntuple _single _pair _triple _quadruple".split()},
}  # fmt: skip

FOREACH = "_foreach_"  # functions over lists of tensors: `torch._foreach_add_(parameters, gradients, alpha=-lr)`


def absolute_name(path: str) -> str:
    return f"{ROOT}.{path}" if path else ROOT


def resolve_submodule(name: str) -> str:
    """Real path of a module below an alias: "typing" for "compatible.single_client.typing", "" if there is none."""
    above, _, last = name.rpartition(".")
    home = ALIASES.get(above, above and resolve_submodule(above))
    return f"{home}.{last}".lstrip(".") if (home or above in ALIASES) and ":" not in home else ""


def resolve_alias(name: str) -> Any:
    """Import the target of an alias: a module, or the attribute after the colon."""
    home, _, inner = ALIASES.get(name, resolve_submodule(name)).partition(":")
    module = importlib.import_module(absolute_name(home))
    return getattr(module, inner) if inner else module


class AliasFinder:
    """First meta path finder: the aliases."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        top, _, inner = name.partition(".")
        if top == "einops":
            return einops_spec(name, path)
        if top != ROOT:
            return None
        if inner in ALIASES or inner in MERGED or is_refused(inner) or resolve_submodule(inner):
            return ModuleSpec(name, AliasFinder, is_package=True)  # type: ignore[arg-type]
        return None

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        return None

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        name = module.__name__.partition(".")[2]
        note_alias(module.__name__)
        note_alias(absolute_name(ALIASES.get(name, name).partition(":")[0]))
        if name in RENAMED:
            warnings.warn(f"{module.__name__} is now {absolute_name(RENAMED[name])}", DeprecationWarning, stacklevel=2)
        paths = MERGED.get(name, () if is_refused(name) else None)
        if name in ALIASES or paths is None:  # the import system returns what is in sys.modules after exec_module
            sys.modules[module.__name__] = other = resolve_alias(name)
            if isinstance(other, ModuleType):
                vars(other).setdefault("__path__", [])  # so that aliases below it reach this finder
                vars(other).setdefault("__getattr__", partial(raise_missing, other, name))
        else:
            module.__doc__ = f"The names of {', '.join(map(absolute_name, paths))}, under an alias."
            add_lazy_names(module, paths)


def is_refused(path: str) -> bool:
    """True for a module that imports, but whose names are refused when they are called."""
    return f"{path}.".startswith(IMPORTED_NAMESPACES)


def refused_type(path: str) -> Any:
    return importlib.import_module(absolute_name("compat.refused")).refused_type(path)


def note_alias(path: str) -> None:
    """Hide from `dir` an alias, or its home, that the import system is about to bind in the module above it."""
    above, _, last = path.rpartition(".")
    home = sys.modules.get(above)
    if home is not None and last not in vars(home):
        suggestions.IMPORTED_ALIASES.setdefault(home.__name__, set()).add(last)


def private_name(name: str) -> Any:
    """The class or function of a name of NAME_ALIASES, or of a name that starts with FOREACH."""
    home, _, attribute = NAME_ALIASES.get(name, "compat.private_names.foreach").rpartition(".")
    found = getattr(importlib.import_module(absolute_name(home)), attribute)
    return found if name in NAME_ALIASES else found(name.removeprefix(FOREACH))


def raise_missing(module: ModuleType, path: str, name: str) -> Any:
    """The `__getattr__` of a module under an alias that has none of its own."""
    if name in NAME_ALIASES:
        return private_name(name)
    raise suggestions.missing_name(f"flow.{path}", name, suggestions.public(vars(module)))


class MissingFinder:
    """Last meta path finder: an error that says what to use, for each name below the root that no other finder found.

    `from minflow.nn import Foo` gets here too, since the import system then tries a submodule; and so does
    `import minflow.math`, a legacy namespace that is an attribute, which is served.
    """

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        above, _, last = name.rpartition(".")
        if name.partition(".")[0] != ROOT or not above:
            return None
        try:
            attribute = getattr(sys.modules[above], last)
            hint = f"from {above} import {last}: it is not a module"
        except AttributeError as error:
            attribute, hint = None, getattr(error, "hint", "")
        if isinstance(attribute, __future__._Feature):  # `annotations` in most of our files
            hint = ""
        if isinstance(attribute, ModuleType):
            return ModuleSpec(name, MissingFinder, is_package=True)  # type: ignore[arg-type]
        inner = above.partition(".")[2]
        spaces = [inner, *(alias for alias, home in ALIASES.items() if home == inner), *MERGED.get(inner, ())]
        public = next((it for it in spaces[1:] if inner.startswith(("core.", "compat."))), inner)
        hint = next(filter(None, [reason(f"{it}.{last}".lstrip(".")) for it in spaces]), hint)
        name = f"{absolute_name(public)}.{last}"
        hint = hint or substitute(f"{public}.{last}") or f"dir({absolute_name(public)}) lists what is there"
        raise MissingModuleError(f"there is no module or name {name}", where=here(), hint=hint)

    create_module = AliasFinder.create_module

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        above, _, last = module.__name__.rpartition(".")
        note_alias(module.__name__)
        sys.modules[module.__name__] = getattr(sys.modules[above], last)


class EinopsLoader(SourceFileLoader):
    """Loader that adds minflow to einops's list of backends, and serves `einops.layers.minflow`."""

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ == "einops._backends":
            super().exec_module(module)
            importlib.import_module(absolute_name("compat.einops_backend"))
        else:
            sys.modules[module.__name__] = importlib.import_module(absolute_name("compat.einops"))


def einops_spec(name: str, path: Any) -> ModuleSpec | None:
    spec = PathFinder.find_spec(name, path) if name == "einops._backends" else None
    if spec is not None and spec.origin is not None:
        spec.loader = EinopsLoader(name, spec.origin)
    return ModuleSpec(name, EinopsLoader(name, "")) if name == "einops.layers.minflow" else spec


def add_lazy_names(module: ModuleType, paths: Sequence[str]) -> None:
    """Give `module` a `__getattr__` that looks up missing names in the modules `paths`, and a matching `__dir__`."""
    own = module.__name__.partition(".")[2]
    vars(module).setdefault("__path__", ())  # a tuple: for a list, jedi would take the file for a package

    def __getattr__(name: str) -> Any:
        if f"{own}.{name}" in ALIASES or f"{own}.{name}" in MERGED:
            return importlib.import_module(f"{module.__name__}.{name}")
        for path in paths if name not in NAME_ALIASES and name[:1] != "_" else ():
            home, later = importlib.import_module(absolute_name(path)), suggestions.LEGACY_NAMES.get(f"flow{path}", {})
            if name in vars(home) or name in suggestions.LAZY_NAMES.get(home.__name__, ()):
                return getattr(home, name)
            if name in later:
                return later[name]
        if name in NAME_ALIASES:
            return private_name(name)
        if is_refused(own) and not name.startswith("__") and name[-1] != "_":  # IPython probes for _repr_html_
            return refused_type(f"{own}.{name}")
        raise suggestions.missing_name(f"flow.{own}", name, __dir__())

    def __dir__() -> list[str]:
        homes = [vars(importlib.import_module(absolute_name(path))) for path in paths]
        later = [suggestions.LAZY_NAMES.get(names["__name__"], {}) for names in homes]
        found = {
            n: it
            for names in homes
            for n in suggestions.public(names)
            if not isinstance(it := names.get(n), ModuleType)
        }
        classes = [n for names in later for n, path in names.items() if path[-1] != "."]
        return sorted({*found, *classes, *suggestions.public(vars(module))})

    module.__getattr__ = __getattr__  # type: ignore[method-assign]
    if module.__spec__ is None or module.__spec__.loader is AliasFinder:  # a real file keeps its own __dir__
        module.__dir__ = __dir__  # type: ignore[method-assign]


def import_alias(package: str, name: str) -> Any:
    """Import an alias on attribute access: `flow.backends` without `import minflow.backends`. None if there is none."""
    path = f"{package}.{name}".partition(".")[2]
    if name in NAME_ALIASES or name.startswith(FOREACH):
        return private_name(name)
    if path in IMPORTED_TYPES:
        return refused_type(path)
    known = path in ALIASES or path in MERGED or is_refused(path)
    if not known and path != "compiler":  # PyTorch's functions are aliases below ours
        return None
    importlib.import_module(absolute_name(path))
    return sys.modules[absolute_name(path)]


def install() -> None:
    """Register the finder; called once, at the end of `import minflow`.

    The modules below `nn.modules` also get the lazy lookup, because PyTorch has some layers, such as Flatten, in other
    files than minflow.
    """
    sys.meta_path[:] = [AliasFinder, *sys.meta_path, MissingFinder]
    if "einops._backends" in sys.modules:  # imported before us
        importlib.import_module(absolute_name("compat.einops_backend"))
    suggestions.RESOLVERS[:] = [import_alias]
    for name in {absolute_name(name.rpartition(".")[0]) for name in (*ALIASES, *MERGED)} & {*sys.modules}:
        vars(sys.modules[name]).setdefault("__path__", [])
    for name in [n for n in sys.modules if n.startswith(f"{ROOT}.nn.modules")]:
        add_lazy_names(sys.modules[name], MERGED.get(name.partition(".")[2], ("nn",)))
