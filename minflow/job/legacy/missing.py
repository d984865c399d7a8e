"""Legacy names that minflow does not have, and their replacements.

The AttributeError of `flow.X`, `flow.nn.X`, `flow.math.X`, ... shows the replacement as its hint: see
`../../core/messages/suggestions.py`, which suggests similar names for a misspelt one. Read next: `overloads.py`.
"""

from ...core.messages.invocation import command

CAST = "flow.parallel_cast(x, distribute=flow.distribute.split(0)) in a job, x.to_global(placement, sbp) on tensors"
ITSELF = "leave it out: sessions, memory and the messages between ranks need no settings"
OPERATOR = (
    "the function of that op, as flow.layers.batch_normalization; flow.library.custom_op makes an op of your own with "
    "its gradient, for eager code, graphs and jobs"
)
BUFFERS = "numpy arrays of different shapes are made equal before the call: np.pad, or a list for tp.ListNumpy"
IMAGES = "flow.vision.transforms, before the call"
EAGER = "eager code is always on: flow.tensor(...) outside a job function"

FLOW = {
    **dict.fromkeys("""
        user_op_builder user_op_module_builder consistent_user_op_builder consistent_user_op_module_builder builtin_op
        find_or_create_module Model
    """.split(), OPERATOR),
    **dict.fromkeys("""
        tensor_buffer_to_tensor tensor_to_tensor_buffer tensor_buffer_to_list_of_tensors gen_tensor_buffer
        tensor_list_to_tensor_buffer tensor_buffer_to_tensor_list tensor_list_split tensor_buffer
        record
    """.split(), BUFFERS),
    **dict.fromkeys("""
        image_decode image_flip image_normalize image_random_crop image_resize image_target_resize image_batch_align
        image
    """.split(), IMAGES),
    **dict.fromkeys("""
        object_bbox_flip object_bbox_scale object_segmentation_polygon_flip object_segmentation_polygon_scale
        object_segmentation_polygon_to_mask detection
    """.split(), "numpy on the arrays, before the call"),
    **dict.fromkeys("""
        hierarchical_parallel_cast distribute_concat distribute_split distribute_clone distribute_add distribute_map
    """.split(), CAST),
    **dict.fromkeys("inter_job_reuse_mem_strategy InitEagerGlobalSession nccl".split(), ITSELF),
    "unique_with_counts": "np.unique(x, return_inverse=True, return_counts=True), before the call",
    "enable_typing_check": "leave it out: annotations are always checked",
    "eager_nccl_all_reduce": "flow.distributed.all_reduce(x)",
    "distributed_partial_fc_sample": "flow.layers.dense(x, classes, model_distribute=flow.distribute.split(0))",
    "current_machine_id": "flow.env.get_rank(), counted over all machines, and flow.env.get_local_rank() on its own",
    "current_resource": "flow.env.current_resource()",
    "enable_eager_environment": EAGER,
    **dict.fromkeys("acc pack unpack".split(), "nn.Graph: self.config.set_gradient_accumulation_steps(n)"),
    "FixedTensorDef": "x: flow.typing.Numpy.Placeholder((32, 10)) as the annotation of the parameter",
    "MirroredTensorDef": "x: flow.typing.ListNumpy.Placeholder((32, 10)) as the annotation of the parameter",
    "MirroredTensorListDef": "x: flow.typing.ListListNumpy.Placeholder((32, 10)) as the annotation of the parameter",
    "ExecutionConfig": "flow.function_config()",
    "function": "flow.global_function(type=\"train\")",
    "name_scope": "flow.scope.namespace(name)",
    "current_scope": "flow.scope.placement and flow.scope.namespace are context managers; nothing need ask for them",
    "device_prior_placement": "flow.scope.placement(\"cpu\", \"0:0-3\")",
    "fixed_placement": "flow.scope.placement(\"cpu\", \"0:0-3\")",
    "current_global_function_desc": "True or False for IsTrainable(); layers and dropout see it themselves",
    "dtypes": "flow.float32, flow.float64, flow.float16, flow.int8, flow.int32, flow.int64, flow.uint8",
    "char": "flow.int8",
    "empty_initializer": "flow.zeros_initializer()",
    "util": "flow.utils",
    "categorical_ordinal_encode": "np.unique(keys, return_inverse=True), before the call",
    "pad_grad": "nothing: gradients of flow.pad are worked out",
    "losses": "flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1])).minimize(loss)",
    "add_loss": "flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1])).minimize(loss)",
    "model": "flow.nn.Module and flow.nn.Graph",
    "saved_model": "flow.save(module.state_dict(), path), or flow.checkpoint.save(path) for the variables of jobs",
    "serving": "flow.save(module.state_dict(), path)",
    **dict.fromkeys("""
        tensorrt contrib indexed_slices_reduce_sum
    """.split(), "leave it out: it was for one kind of device"),
    "sysconfig": f"{command('doctor')} shows the installation",
}  # fmt: skip

NN = {
    "deconv2d": "flow.nn.conv2d_transpose",
    "torch_conv2d_transpose": "flow.nn.conv2d_transpose",
    "batch_normalization_relu": (
        "flow.nn.relu(flow.nn.batch_normalization(...)): the two are fused when the job is compiled"
    ),
    "batch_normalization_add_relu": "flow.nn.relu(flow.nn.batch_normalization(...) + addend)",
    "softmax_grad": "nothing: gradients of flow.nn.softmax are worked out",
    "gelu": "flow.math.gelu in a job, flow.nn.functional.gelu on tensors",
    "sigmoid": "flow.math.sigmoid in a job, flow.sigmoid on tensors",
    "tanh": "flow.math.tanh in a job, flow.tanh on tensors",
    "dense": "flow.layers.dense",
    "max_pool": "flow.nn.max_pool2d",
    "cross_entropy": (
        "flow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits); flow.nn.functional.cross_entropy on tensors"
    ),
    "smooth_l1_loss": "flow.smooth_l1_loss",
    "image": IMAGES,
}  # fmt: skip

MATH = {
    **{name: f"flow.math.reduce_{name}" for name in "sum mean max min prod any all std logsumexp".split()},
    "var": "flow.math.reduce_variance",
    "norm": "flow.math.reduce_euclidean_norm",
    **dict.fromkeys("sub minus".split(), "flow.math.subtract"),
    "mul": "flow.math.multiply",
    **dict.fromkeys("div truediv true_divide".split(), "flow.math.divide"),
    "neg": "flow.math.negative",
    **dict.fromkeys("floor_mod remainder".split(), "flow.math.mod"),
    "floor_divide": "flow.math.floordiv",
    "power": "flow.math.pow",
    **dict.fromkeys("clip clamp clip_by_scalar".split(), "flow.math.clip_by_value"),
    "topk": "flow.math.top_k",
    "argmin": "flow.math.argmax(-x)",
    "softmax": "flow.nn.softmax",
    **{name: f"flow.{name}" for name in """matmul cast where argsort sort concat log2 logical_or logical_not
        logical_xor cumsum isnan isfinite""".split()},
    "tanh_grad": "dy * (1 - y * y)",
}  # fmt: skip

LAYERS = {
    "layer_norm_grad": "nothing: gradients of flow.layers.layer_norm are worked out",
    "layer_norm_param_grad": "nothing: gradients of flow.layers.layer_norm are worked out",
    "linear": "flow.layers.dense",
    "Dense": "flow.layers.dense",
    "dropout": "flow.nn.dropout",
    "max_pool2d": "flow.nn.max_pool2d",
    "avg_pool2d": "flow.nn.avg_pool2d",
    "relu": "flow.nn.relu",
    "embedding": "flow.gather(flow.get_variable(...), indices)",
    "flatten": "flow.flatten(x, start_dim=1), or flow.reshape(x, [x.shape[0], -1])",
}

OPTIMIZER = {
    "Adagrad": "flow.optimizer.RMSProp, or flow.optimizer.Adam",
    "Momentum": "flow.optimizer.SGD(schedule, momentum=0.9)",
    "CosineAnnealingLR": "flow.optimizer.CosineScheduler(base_lr, steps)",
    "StepLR": "flow.optimizer.PiecewiseScalingScheduler(base_lr, boundaries, scale)",
    "ConstantScheduler": "flow.optimizer.PiecewiseConstantScheduler([], [0.1])",
    "DynamicLossScaleSchedule": "flow.optimizer.loss_scale.dynamic_loss_scale(...)",
}

RANDOM = {
    "gen_seed": "flow.manual_seed(seed)",
    "CoinFlip": "flow.random.bernoulli(x)",
    "coin_flip": "flow.random.bernoulli(x)",
    "uniform": "flow.rand(2, 3)",
    "normal": "flow.randn(2, 3)",
    "randint": "flow.randint(0, 10, (2, 3))",
    "permutation": "flow.random.generate_random_batch_permutation_indices(x), or flow.randperm(n)",
}

SCOPE = {
    "config": "flow.function_config()",
    "name_scope": "flow.scope.namespace(name)",
    "consistent_view_scope": "flow.scope.consistent_view()",
}

MISSING = {
    "flow": FLOW,
    "flow.nn": NN,
    "flow.math": MATH,
    "flow.layers": LAYERS,
    "flow.optimizer": OPTIMIZER,
    "flow.random": RANDOM,
    "flow.scope": SCOPE,
}
