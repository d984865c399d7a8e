"""Names that minflow leaves out on purpose -> one sentence: the reason, or what to use.

Names are relative to the root, and `*` matches any letters. The error for such a name contains the sentence, and so
does `docs/coverage.md`. Names of the legacy API are in `job/legacy/missing.py`. Read next: `suggestions.py`.
"""

from __future__ import annotations

import functools
from fnmatch import fnmatchcase


def rows(names: str, why: str, namespace: str = "") -> dict[str, str]:
    """Entries for several names with one reason."""
    return dict.fromkeys([f"{namespace}{name}" for name in names.split()], why)


REASON_GLOBAL = "x.to_global(placement, sbp) and module.to_global(placement, sbp) split tensors over ranks"
REASON_SPARSE = "flow.sparse has mm, addmm, sum and softmax; other functions take x.to_dense()"
REASON_LAYOUT = (
    "sparse tensors have the layout COO: flow.sparse_coo_tensor(flow.stack([row, col]), values, size), x.to_sparse()"
)
REASON_QUANTIZED = (
    "numbers are not quantized: x.half() stores less, nn.Module and autograd.Function can round by a scale"
)
REASON_OFRECORD = "there is no reader of OFRecord: utils.data.Dataset and DataLoader, vision.datasets.ImageFolder"
REASON_IMAGES = "vision.transforms on each image of a Dataset; PIL.Image.open decodes"
REASON_OFFLOAD = '.to("cpu") and later .to("cuda"): memory of a GPU is free again once no tensor uses it'
REASON_EXPORT = 'flow.save(graph, folder) keeps what an nn.Graph computes; flow.onnx.export(model, x, "model.onnx")'
REASON_TENSORBOARD = (
    "flow.watch and the curves of a notebook; or write the numbers into a list and plot it with matplotlib"
)
REASON_DOWNLOAD = (
    'nothing is downloaded: fetch the file, flow.load("weights.safetensors"), then model.load_state_dict(state)'
)
REASON_SCRIPT = "flow.save(graph, folder) of an nn.Graph, and flow.load_graph(folder) where its code is not"
REASON_CUDA_GRAPHS = "an nn.Graph on a GPU is captured in CUDA graphs at its second call, without further code"

REFUSED: dict[str, str] = {
    # several ranks
    **rows("one_embedding one_embedding.*", REASON_GLOBAL),
    **rows("_oneflow_internal.* _C._*", "the public names, such as flow.Tensor and flow.distributed"),
    **rows("global_view global_view.*", "flow.utils.global_view"),
    **rows("to_consistent redistribute", "x.to_global(placement, sbp)", "Tensor."),
    **rows("check_meta_consistency", "x.to_global(placement, sbp) compares shapes and dtypes of all ranks", "Tensor."),
    **rows("to_consistent", "module.to_global(placement, sbp)", "nn.Module."),
    **rows("init_rdma rdma_is_initialized", "leave it out: MPI chooses how ranks reach each other", "env."),
    **rows("fsdp* tensor* _tensor* _composable* device_mesh*", REASON_GLOBAL, "distributed."),
    **rows("optim*", "config.enable_zero(True) of an nn.Graph splits the states of an optimizer", "distributed."),
    **rows("pipeline* pipelining*", "module.to(nn.graph.GraphModule).set_stage(0, placement) in an nn.Graph",
           "distributed."),
    **rows("distributed.rpc distributed.rpc.* futures futures.*",
           "flow.distributed.send and recv: a rank calls no functions of another"),
    **rows("elastic* run", "minflow launch -n 4 program.py starts ranks", "distributed."),
    # OneFlow's own tools
    **rows("F F.*", "flow.nn.functional"), **rows("keras keras.*", "flow.nn.functional.relu and the like"),
    **rows("advanced framework.attr_util framework.check_point_v2 framework.tensor_str support "
           "support.* system deprecated asyncs asyncs.* cuda._utils optim.utils nn.utils.parameters_grouping",
           "leave it out: it is a part of OneFlow's own machinery"),
    **rows("autoprof test_utils test_utils.*", "flow.testing and flow.utils.benchmark"),
    **rows("mock_torch", "python -m minflow.compat program.py, or import minflow.compat.torch"),
    **rows("remat", "utils.checkpoint.checkpoint(function, *args)"),
    **rows("utils.backend utils.insight", "flow.show(graph), flow.timeline()"),
    # file formats and image ops of OneFlow
    **rows("COCOReader OFRecordReader OFRecordRawDecoder OFRecordBytesDecoder OFRecordImageDecoder "
           "OFRecordImageDecoderRandomCrop OFRecordImageGpuDecoderRandomCropResize OFRecordImageDecoder* "
           "GPTIndexedBinDataReader RawReader OFRecord*", REASON_OFRECORD, "nn."),
    **rows("CoinFlip CropMirrorNormalize image image.*", REASON_IMAGES, "nn."),
    **rows("decode_onerec read_onerec", REASON_OFRECORD),
    **rows("deform_conv2d", "F.grid_sample moves the places, F.conv2d filters them", "nn.functional."),
    **rows("ctc_greedy_decoder", "log_probs.argmax(-1), flow.unique_consecutive, and the blank left out",
           "nn.functional."),
    # quantized and sparse tensors
    **rows("MinMaxObserver MovingAverageMinMaxObserver FakeQuantization Quantization QatConv1d QatConv2d QatConv3d "
           "quantized quantized.* quantizable qat intrinsic", REASON_QUANTIZED, "nn."),
    **rows("quantization quantization.* ao ao.* quantize_* quantized_* fake_quantize_* dequantize fbgemm_* "
           "per_* choose_qparams_optimized q_scale q_zero_point q_per_channel_*",
           REASON_QUANTIZED),
    **rows("dequantize int_repr q_scale q_zero_point q_per_channel_* qscheme",
           REASON_QUANTIZED, "Tensor."),
    **rows("sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor sparse_compressed_tensor "
           "sparse_csr sparse_csc sparse_bsr sparse_bsc", REASON_LAYOUT),
    **rows("hspmm smm dsmm sspmm sspaddmm hsmm saddmm", "flow.sparse.mm and flow.sparse.addmm, then x.to_sparse()"),
    **rows("sampled_addmm spsolve spdiags *Semi* *semi_structured* check_sparse_tensor_invariants as_sparse_gradcheck",
           REASON_SPARSE, "sparse."),
    **rows("to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc crow_indices col_indices ccol_indices row_indices",
           REASON_LAYOUT, "Tensor."),
    **rows("to_mkldnn sspaddmm smm sparse_resize_* resize_as_sparse_", REASON_SPARSE, "Tensor."),
    **rows("sparse_adam", "optim.SparseAdam", "optim."),
    # functions with a substitute of another name
    **rows("lu_factor_ex", "linalg.lu_factor, which raises flow.LinAlgError", "linalg."),
    **rows("histogramdd", "flow.histc of one axis; numpy.histogramdd(x.numpy())"),
    **rows("Container modules.container.Container", "nn.Module", "nn."),
    **rows("nested", "nn.utils.rnn.pad_sequence and pack_sequence, and a mask for attention"),
    **rows("masked", "x.masked_fill(~mask, 0).sum(), x[mask].mean()"),
    **rows("modules.linear_cross_entropy*", "nn.CrossEntropyLoss", "nn."),
    **rows("ScalingType SwizzleType", "flow.bmm(a, b)", "nn.functional."),
    **rows("cpp", "flow.library.custom_op", "nn."),
    **rows("LazyModuleMixin", "nn.LazyLinear, nn.LazyConv2d, nn.LazyBatchNorm2d", "nn."),
    **rows("overrides.*", "a class of tensors with a classmethod __torch_function__, which sees the functions"),
    **rows("quasirandom", "numpy or scipy.stats.qmc"),
    **rows("return_types", "the fields of a result, such as flow.sort(x).indices"),
    **rows("monitor nativert numa mtia has_* init_num_threads is_vulkan_available *set_warn_always "
           "is_warn_always_enabled *thread_safe_generator get_device_module from_file",
           "leave it out: it belongs to PyTorch's own kernels"),
    **rows("bits* int1 int2 int3 int4 int5 int6 int7 uint1 uint2 uint3 uint4 uint5 uint6 uint7 "
           "empty_quantized qscheme", "flow.int8, uint8, float16 and bfloat16 are the small dtypes"),
    **rows("autocast_* *t_autocast_* clear_autocast_cache is_autocast_*_enabled",
           'with flow.autocast("cpu", dtype=flow.bfloat16):'),
    **rows("is_anomaly_* set_anomaly_enabled", "with flow.autograd.detect_anomaly():"),
    **rows("is_inference_mode_enabled", "flow.is_grad_enabled()"),
    **rows("empty_permuted empty_strided", "flow.empty(size)"),
    **rows("embedding_renorm_", "nn.Embedding(n, d, max_norm=1.0)"),
    **rows("feature_dropout_", "nn.functional.dropout2d"),
    **rows("FTRL", "optim.Adagrad", "optim."),
    **rows("swap_in_optimizer_params_and_state", "optimizer.load_state_dict(state)", "optim."),
    **rows("as_strided_", "x = x.as_strided(size, stride)", "Tensor."),
    **rows("resize resize_as", "x.resize_(*sizes), or x.reshape(*sizes)", "Tensor."),
    **rows("chalf", "x.cfloat()", "Tensor."),
    **rows("ipu xpu mtia", "x.to(\"cpu\")", "Tensor."),
    **rows("module_load index", "x[i] reads, x.copy_(y) writes", "Tensor."),
    # hooks and extension points
    **rows("register_module_backward_hook", "register_module_full_backward_hook(hook), the hook of all modules today",
           "nn.modules.module."),
    **rows("triton_op wrap_triton register_vmap register_torch_dispatch register_autocast opcheck get_ctx infer_schema "
           "fallthrough_kernel get_kernel",
           "custom_op, register_autograd, register_kernel and register_fake; autograd.gradcheck tests a gradient",
           "library."),
    # other devices
    **rows("offload load is_offloaded", REASON_OFFLOAD, "Tensor."),
    **rows("offload load", REASON_OFFLOAD, "nn.Module."),
    **rows("CUDAGraph graph graphs graphs.* make_graphed_callables", REASON_CUDA_GRAPHS, "cuda."),
    **rows("ExternalStream nvtx nvtx.* profiler", "flow.cuda.Stream and Event; graph.profile measures", "cuda."),
    **rows("Stream Event", "flow.cuda.Stream and flow.cuda.Event, on a GPU"),
    **rows("comm comm.* nccl nccl.*", "flow.distributed and flow.comm", "cuda."),
    **rows("sparse sparse.*", 'flow.sparse_coo_tensor(indices, values, size, device="cuda")', "cuda."),
    **rows("tensorrt contrib.*", "it is for one kind of device: leave it out"),
    # vision
    **rows("AugMix ElasticTransform functional.elastic_transform",
           "RandAugment, RandomPerspective; transforms.Lambda with a function of your own", "vision.transforms."),
    # OneFlow's job functions
    **rows("core.operator core.operator.* core.job core.job.* core.common core.common.* core.framework core.framework.*"
           " core.record core.record.* python_gen python_gen.*",
           "leave it out: settings are Python objects, as flow.math.relu for kRelu, flow.float32 for kFloat, "
           "flow.truncated_normal_initializer() for an InitializerConf"),
    **rows("python python.*", "the public name: flow.distribute for python.framework.distribute, flow.float32 for "
           "python.framework.dtype, flow.layers.dense for one of python.ops"),
    **rows("OFRecord* ofrecord_* decode_* coco_reader onerec_* Image* Megatron* BlobConf RawCodec *Preprocessor",
           "NumPy arrays given to the job, from a flow.utils.data.DataLoader or a file: there are no "
           "OFRecord readers", "data."),
    **rows("grouped_* one_embedding_* *_grad",
           "other functions, which the compiler fuses; backward() computes gradients", "_C."),
    **rows("v2.* tv_tensors", "the same names are in vision.transforms; v2.ToImage() and v2.ToDtype(flow.float32, "
           "scale=True) together are ToTensor()", "vision.transforms."),
    **rows("KMNIST EMNIST QMNIST USPS SVHN STL10 ImageNet CelebA LSUN Places365 Cityscapes Coco* VOC* Caltech* Food101 "
           "Flowers102 OxfordIIITPet StanfordCars LFW* Kinetics*",
           "fetch and unpack its files: ImageFolder reads a folder for each class, DatasetFolder other files",
           "vision.datasets."),
    **rows("densenet* DenseNet* googlenet GoogLeNet* inception* Inception* mobilenet*v3* MobileNet_V3* MobileNetV3 "
           "efficientnet* EfficientNet* convnext* ConvNeXt* swin* Swin* shufflenet* ShuffleNet* mnasnet* MNASNet* "
           "regnet* RegNet* maxvit* MaxVit* detection* segmentation* video* quantization* optical_flow* "
           "feature_extraction* wide_resnet101_2 resnext101*",
           "its layers are in nn; ready ones are resnet18 to resnet152, vgg16, mobilenet_v2, vit_b_16, UNet: "
           "vision.models.list_models()", "vision.models."),
    **rows("roi_align roi_pool ps_roi_align ps_roi_pool RoIAlign RoIPool MultiScaleRoIAlign",
           "the part x[..., top:bottom, left:right] of each box, then F.interpolate(part, size)", "vision.ops."),
    **rows("deform_conv2d DeformConv2d", "F.grid_sample moves the places, F.conv2d filters them", "vision.ops."),
    **rows("draw_bounding_boxes draw_segmentation_masks draw_keypoints flow_to_image",
           "PIL.ImageDraw on transforms.ToPILImage()(image); or matplotlib", "vision.utils."),
    **rows("io io.*", "PIL.Image.open reads a picture, transforms.PILToTensor() makes a tensor of it", "vision."),
    # other programs
    **rows("export export.* fx.* package package.* backends.onnx", REASON_EXPORT),
    **rows("dynamo_export register_custom_op_symbolic unregister_custom_op_symbolic symbolic_helper* symbolic_opset* "
           "utils utils.* ops verification verification.* operators select_model_mode_for_export enable_fake_mode "
           "ExportOptions JitScalarType is_onnxrt_backend_supported enable_log disable_log",
           "flow.onnx.export(model, x, \"model.onnx\"); flow.onnx.show is a picture of any ONNX file", "onnx."),
    **rows("save load freeze RecursiveScriptModule optimize_for_inference",
           REASON_SCRIPT, "jit."),
    **rows("utils.tensorboard.* summary.*", REASON_TENSORBOARD),
    **rows("load list help",
           REASON_DOWNLOAD, "hub."),
    **rows("utils.cpp_extension utils.cpp_extension.* utils.ffi utils.hipify* classes classes.*",
           "flow.library.custom_op: an operation in Python with its gradient, in eager code, graphs and jobs"),
    **rows("utils.mobile_optimizer utils.bundled_inputs _dynamo.* _inductor _inductor.* _subclasses.*",
           "flow.compile gives the model back; nn.Graph compiles"),
    **rows("_six _six.*", "str, math.inf and collections.abc.Mapping: PyTorch 2 has no _six either"),
    **rows("Storage *Storage", "flow.TypedStorage and flow.UntypedStorage: x.storage(), x.untyped_storage()"),
    **rows("typed_storage storage_type", "x.numpy() shares the memory of a tensor", "Tensor."),
}  # fmt: skip


# Namespace -> the same for each name of it that is missing and resembles none that exists.
SUBSTITUTES = {
    "_C": "other functions, which the compiler fuses; backward() computes gradients",
    "amp": 'with flow.autocast("cpu", dtype=flow.bfloat16):',
    "autograd": "flow.autograd.Function, grad, functional; flow.func.jvp; flow.profiler",
    **dict.fromkeys(
        ["accelerator", "cpu", "mps", "xpu", "mtia", "numa"], "flow.cuda or the CPU: other devices are not supported"
    ),
    **dict.fromkeys(["backends", "monitor", "nativert"], "leave it out: it sets a library that minflow lacks"),
    "compiler": "leave it out: flow.compile gives the model back; nn.Graph compiles",
    "cuda": "flow.cuda.memory_allocated, synchronize, Stream and Event; nvidia-smi shows the rest",
    "distributed": "flow.distributed.all_reduce, all_gather, send, new_group, ...; nn.parallel.DistributedDataParallel",
    "distributed.checkpoint": "flow.save(model.state_dict(), path), flow.load(path)",
    "distributions": "numpy.random.default_rng(0) draws samples; a subclass of distributions.Distribution has log_prob",
    "func": "flow.func.grad, vjp, jvp, vmap, jacrev and hessian; flow.func.functional_call",
    "jit": "leave it out: flow.jit.script gives the function back",
    "library": "flow.library.custom_op",
    "multiprocessing": "Python's own multiprocessing",
    "nn.attention": "F.scaled_dot_product_attention(q, k, v, attn_mask=mask), flex_attention",
    "nn.parallel": "nn.parallel.DistributedDataParallel, a process for each device",
    "nn.parameter": "isinstance(p, nn.parameter.UninitializedParameter)",
    "onnx": REASON_EXPORT,
    "profiler": "flow.profiler.profile and record_function",
    "serialization": "flow.save and flow.load; flow.load runs no code of a file",
    "torch_version": "flow.__version__",
    "types": "the annotations str | pathlib.Path, int | float",
    "utils": "leave it out; model.summary(x) counts operations",
    "utils.checkpoint": "utils.checkpoint.checkpoint(function, *args)",
    "utils.data": "utils.data.Dataset, IterableDataset and DataLoader",
    "nn.hooks": "module.register_full_backward_hook",
    "utils.hooks": "module.register_full_backward_hook",
    "utils.tensorboard": "import minflow.utils.tensorboard",
}


# Namespaces that import all the same, for packages that only compare types: `import_aliases.py`, `compat/refused.py`.
IMPORTED_NAMESPACES = tuple(
    f"{name}."
    for name in """ao quantization nn.quantized nn.quantizable nn.qat nn.intrinsic
    distributed.tensor distributed._tensor distributed.device_mesh distributed.fsdp distributed._composable
    distributed.optim distributed.pipelining distributed.rpc distributed.elastic distributed.checkpoint
    distributed.algorithms distributed._functional_collectives
    futures fx export package _dynamo _inductor _subclasses onnx.utils onnx.operators onnx.symbolic_helper
    utils.cpp_extension utils.mobile_optimizer utils.bundled_inputs
    cuda.nvtx cuda.comm cuda.nccl cuda.graphs vision.io
    vision.models.inception vision.models.densenet vision.models.googlenet vision.models.mobilenetv3
    vision.models.efficientnet vision.models.convnext vision.models.swin_transformer vision.models.shufflenetv2
    vision.models.mnasnet vision.models.regnet vision.models.detection vision.models.segmentation
    vision.models.video vision.models.quantization vision.models.feature_extraction""".split()
)
# Names of namespaces that exist here, for the same packages.
IMPORTED_TYPES = {"cuda.CUDAGraph", "cuda.graph", "nn.attention.flex_attention.AuxRequest"} | {
    f"vision.datasets.{name}" for name in "KMNIST EMNIST QMNIST USPS SVHN STL10 ImageNet CelebA Places365".split()
}


def substitute(name: str) -> str:
    """The substitute for a missing name such as "utils.data.datapipes"; "" if there is none."""
    while name and name not in SUBSTITUTES:
        name = name.rpartition(".")[0]
    return SUBSTITUTES.get(name, "")


@functools.cache
def reason(name: str) -> str | None:
    """The reason why a name, such as "nn.COCOReader", is left out; None for any other name."""
    found = REFUSED.get(name)
    return found or next((why for row, why in REFUSED.items() if "*" in row and fnmatchcase(name, row)), None)
