#!/usr/bin/env python3
"""Generates cases.npz: every operator on small inputs, with the results of ONNX Runtime or NumPy.

    python3 -m venv venv && venv/bin/pip install numpy==2.4.6 onnx==1.23.2 onnxruntime==1.31.1 ml_dtypes==0.6.0
    venv/bin/python tests/compiler/ir/operators/make_cases.py

A case has a name and in the archive
  NAME/tn     the call in the text form, over %a, %b, ... (bytes); absent where only the importer is tested
  NAME/onnx   an ONNX model of it (bytes); absent where ONNX has no such operator
  NAME/a ...  the inputs
  NAME/0 ...  the results
The stored results are those of a processor with AVX-512 VNNI: without it, ONNX Runtime's int8 products saturate.
The tests of compiler/ir run the calls, those of compiler/frontend the models.
"""
import pathlib
import sys
import tempfile

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

random = np.random.default_rng(1)
archive = {}
F = np.float32


def normal(*shape):
    return random.standard_normal(shape).astype(F)


def positive(*shape):
    return random.uniform(0.2, 3, shape).astype(F)


def unit(*shape):
    return random.uniform(-0.9, 0.9, shape).astype(F)


def ints(*shape, low=-9, high=10, dtype=np.int32):
    return random.integers(low, high, shape).astype(dtype)


def store(name, tn, inputs, results, model=None):
    assert f"{name}/0" not in archive, name
    if tn is not None:
        archive[f"{name}/tn"] = np.frombuffer(tn.encode(), np.uint8)
    if model is not None:
        archive[f"{name}/onnx"] = np.frombuffer(model, np.uint8)
    for letter, value in zip("abcdefgh", inputs):
        archive[f"{name}/{letter}"] = np.asarray(value)
    for number, value in enumerate(results):
        archive[f"{name}/{number}"] = np.asarray(value)


def direct(name, tn, inputs, *results):
    """A case whose results are computed here."""
    store(name, tn, inputs, results)


def case(op, tn, inputs, constants=(), outputs=1, opset=21, name=None, order=None, domain="", more={}, unused=0, **attributes):
    """One ONNX node: its inputs are `inputs` (letters), then `constants` (None: left out), or as `order` says; `more` are
    attributes with the names of these parameters. `unused` more results of the node are no outputs of the model."""
    name = name or op.lower()
    inputs = [np.asarray(value) for value in inputs]
    letters = list("abcdefgh"[: len(inputs)])
    names, initializers = list(letters), []
    for number, value in enumerate(constants):
        if value is None:
            names.append("")
            continue
        names.append(f"k{number}")
        initializers.append(numpy_helper.from_array(np.asarray(value), f"k{number}"))
    if order:
        names = [names[i] for i in order]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results + [f"unused{i}" for i in range(unused)], name=name, domain=domain or None,
                            **attributes, **more)
    infos = [
        helper.make_tensor_value_info(letter, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for letter, value in zip(letters, inputs)
    ]
    values = [onnx.ValueInfoProto(name=result) for result in results]
    graph = helper.make_graph([node], name, infos, values, initializers)
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        found = session.run(None, dict(zip(letters, inputs)))
    except Exception as reason:  # ONNX Runtime lacks some dtypes; the ONNX project's own evaluator has them
        from onnx.reference import ReferenceEvaluator

        print(f"{name}: by onnx.reference ({str(reason).splitlines()[0][:90]})", file=sys.stderr)
        found = ReferenceEvaluator(model).run(None, dict(zip(letters, inputs)))
    store(name, tn, inputs, found, model.SerializeToString())


def defined(op, inputs, results, **attributes):
    """A node of ONNX Runtime's domain that its CPU provider lacks, whose results, or their function, are given."""
    inputs = [np.asarray(value) for value in inputs]
    if callable(results):
        results = results(*inputs)
    letters, outputs = list("abcdefgh"[: len(inputs)]), [f"y{i}" for i in range(len(results))]
    node = helper.make_node(op, letters, outputs, name=op.lower(), domain="com.microsoft", **attributes)
    infos = [helper.make_tensor_value_info(letter, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
             for letter, value in zip(letters, inputs)]
    graph = helper.make_graph([node], op, infos, [onnx.ValueInfoProto(name=name) for name in outputs])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    store("ms_" + op.lower(), None, inputs, [np.asarray(value, F) for value in results], model.SerializeToString())


def elementwise():
    x, p, u = normal(3, 4), positive(3, 4), unit(3, 4)
    i = ints(3, 4)
    special = np.array([0, -0.0, 1, -1, 2.5, -2.5, 0.5, 1.5, np.inf, -np.inf, np.nan, 3], F)
    for op, tn in {
        "Relu": "relu(%a)", "Sigmoid": "sigmoid(%a)", "Tanh": "tanh(%a)", "Softplus": "softplus(%a)",
        "Softsign": "softsign(%a)", "Mish": "mish(%a)", "Elu": "elu(%a)", "Selu": "selu(%a, alpha=1.6732632, gamma=1.050701)",
        "Celu": "celu(%a)", "LeakyRelu": "leaky_relu(%a)", "ThresholdedRelu": "thresholded_relu(%a)",
        "HardSigmoid": "hard_sigmoid(%a)", "HardSwish": "hard_swish(%a)", "Shrink": "shrink(%a)", "Gelu": "gelu(%a)",
        "Identity": "identity(%a)", "Abs": "abs(%a)", "Neg": "negate(%a)", "Sign": "sign(%a)",
        "Exp": "exp(%a)", "Erf": "erf(%a)", "Sin": "sin(%a)", "Cos": "cos(%a)", "Tan": "tan(%a)", "Atan": "atan(%a)",
        "Sinh": "sinh(%a)", "Cosh": "cosh(%a)", "Asinh": "asinh(%a)", "Floor": "floor(%a)", "Ceil": "ceil(%a)",
    }.items():
        case(op, tn, [x * 2])
    for op, tn in {"Log": "log(%a)", "Sqrt": "sqrt(%a)", "Reciprocal": "reciprocal(%a)"}.items():
        case(op, tn, [p])
    for op, tn in {"Asin": "asin(%a)", "Acos": "acos(%a)", "Atanh": "atanh(%a)"}.items():
        case(op, tn, [u])
    case("Acosh", "acosh(%a)", [p + 1])
    case("Elu", "elu(%a, alpha=0.5)", [x], name="elu_alpha", alpha=0.5)
    case("Celu", "celu(%a, alpha=2.0)", [x], name="celu_alpha", alpha=2.0)
    case("Selu", "selu(%a, alpha=2.0, gamma=3.0)", [x], name="selu_alpha", alpha=2.0, gamma=3.0)
    case("LeakyRelu", "leaky_relu(%a, alpha=0.25)", [x], name="leaky_relu_alpha", alpha=0.25)
    case("Shrink", "shrink(%a, bias=0.25, lambda=0.75)", [x], name="shrink_bias", bias=0.25, lambd=0.75)
    case("HardSigmoid", "hard_sigmoid(%a, alpha=0.5, beta=0.25)", [x], name="hard_sigmoid_slope", alpha=0.5, beta=0.25)
    case("Gelu", "gelu_tanh(%a)", [x], name="gelu_tanh", approximate="tanh")
    case("PRelu", "prelu(%a, %b)", [normal(2, 3, 4), normal(3, 1)])
    case("Round", "round(%a)", [special])
    case("IsNaN", "is_nan(%a)", [special])
    case("IsInf", "is_inf(%a)", [special])
    case("IsInf", None, [special], name="isinf_positive", detect_negative=0)
    case("Sign", "sign(%a)", [i], name="sign_int")
    case("Abs", "abs(%a)", [i], name="abs_int")
    case("Neg", "negate(%a)", [i.astype(np.int8)], name="neg_int")
    case("Not", "logical_not(%a)", [x > 0])
    case("BitwiseNot", "bitwise_not(%a)", [i])
    case("Clip", "clip(%a, min=-0.5, max=0.75)", [x], [F(-0.5), F(0.75)])
    case("Clip", "clip(%a, min=-3, max=4)", [i], [np.int32(-3), np.int32(4)], name="clip_int")
    case("Clip", None, [x, F(-0.5), F(0.75)], name="clip_computed")
    case("Clip", "clip(%a, min=-0.5, max=0.75)", [x], name="clip_6", opset=6 + 1, min=-0.5, max=0.75)
    case("Cast", 'cast(%a, dtype="i32")', [x * 3], to=TensorProto.INT32)
    case("Cast", 'cast(%a, dtype="bool")', [i], name="cast_bool", to=TensorProto.BOOL)
    case("CastLike", 'cast(%a, dtype="i64")', [x * 3], [np.int64(0)])
    direct("swish", "swish(%a)", [x], x / (1 + np.exp(-x)))
    direct("expm1", "expm1(%a)", [x], np.expm1(x))
    direct("log1p", "log1p(%a)", [p], np.log1p(p))
    direct("rsqrt", "rsqrt(%a)", [p], 1 / np.sqrt(p))
    direct("trunc", "trunc(%a)", [x * 3], np.trunc(x * 3))
    case("Where", "select(%a, %b, %c)", [normal(2, 1, 4) > 0, normal(3, 1), normal(2, 3, 4)])
    case("Dropout", "identity(%a)", [x])
    y, b = normal(2, 3, 4), normal(3)
    direct("bias_add", "bias_add(%a, %b)", [y, b], y + b[:, None])


def binary():
    x, y = normal(2, 3, 4), normal(3, 1)
    i, k = ints(2, 3, 4), ints(4, low=1)
    k[1] = -3
    for op, tn in {"Add": "add(%a, %b)", "Sub": "subtract(%a, %b)", "Mul": "multiply(%a, %b)", "Div": "divide(%a, %b)"}.items():
        case(op, tn, [x, y])
        case(op, tn, [i, k], name=op.lower() + "_int")
    case("Mod", "modulo(%a, %b)", [i, k])
    case("Mod", "remainder(%a, %b)", [x, y], name="mod_float", fmod=1)
    case("Mod", "remainder(%a, %b)", [i, k], name="mod_int", fmod=1)
    direct("modulo_float", "modulo(%a, %b)", [x, y], np.mod(x, y))
    direct("floor_divide", "floor_divide(%a, %b)", [i, k], i // k)
    direct("floor_divide_float", "floor_divide(%a, %b)", [x, y], np.floor(x / y))
    case("Pow", "power(%a, %b)", [positive(2, 3), normal(3)])
    case("Pow", "power(%a, %b)", [ints(2, 3, low=-4, high=5), ints(3, low=0, high=4)], name="pow_int")
    case("Pow", None, [positive(2, 3), ints(3, low=0, high=4)], name="pow_mixed")
    case("Max", "maximum(%a, %b)", [x, y])
    case("Min", "minimum(%a, %b)", [i, k])
    case("Max", None, [x, y, normal(4)], name="max_three")
    case("Sum", None, [x, y, normal(4)], name="sum_three")
    case("Mean", None, [x, y, normal(4)], name="mean_three")
    case("Equal", "equal(%a, %b)", [ints(3, 4, low=0, high=3), ints(4, low=0, high=3)])
    case("Less", "less(%a, %b)", [x, y])
    case("LessOrEqual", "less_equal(%a, %b)", [i, k])
    case("Greater", "greater(%a, %b)", [x, y])
    case("GreaterOrEqual", "greater_equal(%a, %b)", [i, k])
    direct("not_equal", "not_equal(%a, %b)", [x > 0, y > 0], (x > 0) != (y > 0))
    case("And", "logical_and(%a, %b)", [x > 0, y > 0])
    case("Or", "logical_or(%a, %b)", [x > 0, y > 0])
    case("Xor", "logical_xor(%a, %b)", [x > 0, y > 0])
    case("BitwiseAnd", "bitwise_and(%a, %b)", [i, k])
    case("BitwiseOr", "bitwise_or(%a, %b)", [i, k])
    case("BitwiseXor", "bitwise_xor(%a, %b)", [i, k])
    u, s = ints(2, 3, low=0, high=200, dtype=np.uint8), ints(3, low=0, high=7, dtype=np.uint8)
    case("BitShift", "shift_left(%a, %b)", [u, s], name="shift_left", direction="LEFT")
    case("BitShift", "shift_right(%a, %b)", [u, s], name="shift_right", direction="RIGHT")
    direct("shift_right_signed", "shift_right(%a, %b)", [i, abs(k)], i >> abs(k))


def reduce():
    x, i = normal(2, 3, 4), ints(2, 3, 4)
    for op, tn in {
        "ReduceSum": "sum", "ReduceMean": "mean", "ReduceProd": "prod", "ReduceMax": "max", "ReduceMin": "min",
        "ReduceSumSquare": "sum_square", "ReduceL1": "norm_l1", "ReduceL2": "norm_l2", "ReduceLogSumExp": "log_sum_exp",
    }.items():
        case(op, f"{tn}(%a, axes=[0, -1], keep=1)", [x], [np.array([0, -1])])
        case(op, f"{tn}(%a)", [x], name=op.lower() + "_all", keepdims=0)
        case(op, f"{tn}(%a, axes=[1])", [x], name=op.lower() + "_11", opset=11, keepdims=0, axes=[1])
    case("ReduceLogSum", "log_sum(%a, axes=[1])", [positive(2, 3)], [np.array([1])], keepdims=0)
    case("ReduceSum", "sum(%a, axes=[1])", [i], [np.array([1])], name="reducesum_int", keepdims=0)
    case("ReduceSum", "identity(%a)", [x], [np.zeros(0, np.int64)], name="reducesum_noop", noop_with_empty_axes=1)
    direct("all", "all(%a, axes=[1])", [x > -0.5], (x > -0.5).all(1))
    direct("any", "any(%a, axes=[1], keep=1)", [x > 0.5], (x > 0.5).any(1, keepdims=True))
    t = ints(3, 5, low=0, high=3).astype(F)
    case("ArgMax", "arg_max(%a, axis=1)", [t], axis=1, keepdims=0)
    case("ArgMin", "arg_min(%a, axis=0, keep=1, select_last=1)", [t], axis=0, select_last_index=1)
    case("CumSum", "cumsum(%a, axis=1)", [x], [np.int64(1)])
    case("CumSum", "cumsum(%a, axis=-1, exclusive=1, reverse=1)", [x], [np.int64(-1)], name="cumsum_back", exclusive=1, reverse=1)
    direct("cumprod", "cumprod(%a, axis=1)", [x], np.cumprod(x, 1))
    case("Softmax", "softmax(%a, axis=1)", [x], axis=1)
    case("Softmax", None, [x], name="softmax_11", opset=11, axis=1)
    case("LogSoftmax", "log_softmax(%a)", [x])
    case("Hardmax", "hardmax(%a)", [t])


def normalize():
    x, g, b = normal(2, 4, 3, 3), normal(4), normal(4)
    case("BatchNormalization", "batch_norm(%a, %b, %c, %d, %e)", [x, g, b, normal(4), positive(4)])
    case("LayerNormalization", "layer_norm(%a, %b, %c)", [normal(2, 3, 5), normal(5), normal(5)])
    case("LayerNormalization", "layer_norm(%a, %b, %c, axis=1, epsilon=0.125)", [normal(2, 3, 5), normal(3, 5), normal(3, 5)],
         name="layernormalization_axis", axis=1, epsilon=0.125)
    case("LayerNormalization", None, [normal(2, 3, 5), normal(5)], name="layernormalization_plain")
    case("InstanceNormalization", "instance_norm(%a, %b, %c)", [x, g, b])
    case("GroupNormalization", "group_norm(%a, %b, %c, groups=2)", [x, g, b], num_groups=2)
    y, s = normal(2, 3, 5), normal(5)
    direct("rms_norm", "rms_norm(%a, %b)", [y, s], y / np.sqrt((y * y).mean(-1, keepdims=True) + 1e-5) * s)
    case("LpNormalization", "lp_normalize(%a, axis=1)", [x], axis=1)
    case("LpNormalization", "lp_normalize(%a, p=1)", [x], name="lpnormalization_1", p=1)
    case("LRN", "local_response_norm(%a, size=3)", [x], size=3)
    # Four channels: one before, two after (ONNX Runtime supports odd sizes only).
    squares = np.stack([(x[:, max(c - 1, 0):c + 3] ** 2).sum(1) for c in range(4)], 1)
    direct("lrn_even", "local_response_norm(%a, size=4, alpha=0.5, beta=0.5, bias=2.0)", [x], x / np.sqrt(2 + F(0.125) * squares))
    case("MeanVarianceNormalization", None, [x])


def convolution():
    case("Conv", "conv1d(%a, %b, strides=[2], padding=[1, 0], dilation=[2])", [normal(2, 3, 9), normal(4, 3, 3)],
         name="conv1d", strides=[2], pads=[1, 0], dilations=[2])
    case("Conv", "conv2d(%a, %b, strides=[1, 2], padding=[1, 0, 2, 1], groups=2)", [normal(1, 4, 5, 6), normal(6, 2, 3, 2)],
         name="conv2d", strides=[1, 2], pads=[1, 0, 2, 1], group=2)
    case("Conv", "conv2d(%a, %b, groups=3)", [normal(1, 3, 5, 5), normal(3, 1, 2, 2)], name="conv2d_depthwise", group=3)
    case("Conv", "bias_add(conv2d(%a, %b, padding=[0, 0, 1, 1]), %c)", [normal(1, 2, 4, 4), normal(3, 2, 2, 2), normal(3)],
         name="conv2d_same", auto_pad="SAME_UPPER")
    case("Conv", "conv3d(%a, %b, padding=[1, 0, 0, 0, 1, 0], strides=[1, 2, 1])", [normal(1, 2, 4, 5, 4), normal(3, 2, 2, 3, 2)],
         name="conv3d", pads=[1, 0, 0, 0, 1, 0], strides=[1, 2, 1])
    case("ConvTranspose", "conv1d_transpose(%a, %b, strides=[2])", [normal(1, 3, 4), normal(3, 2, 3)], name="conv1d_transpose", strides=[2])
    case("ConvTranspose", "conv2d_transpose(%a, %b, strides=[2, 3], padding=[1, 0, 0, 1], output_padding=[1, 0], dilation=[1, 2], groups=2)",
         [normal(5, 4, 3, 4), normal(4, 3, 2, 3)], name="conv2d_transpose", strides=[2, 3], pads=[1, 0, 0, 1],
         output_padding=[1, 0], dilations=[1, 2], group=2)
    case("ConvTranspose", None, [normal(1, 2, 3, 3), normal(2, 2, 3, 3), normal(2)], name="conv2d_transpose_same", strides=[2, 2], auto_pad="SAME_UPPER")
    case("ConvTranspose", None, [normal(1, 2, 3, 3), normal(2, 2, 3, 3)], name="conv2d_transpose_shape", strides=[2, 2], output_shape=[6, 7])
    case("ConvTranspose", "conv3d_transpose(%a, %b)", [normal(1, 2, 2, 3, 2), normal(2, 1, 2, 2, 2)], name="conv3d_transpose")
    x, w = ints(1, 2, 4, 4, dtype=np.int8), ints(3, 2, 2, 2, dtype=np.int8)
    case("ConvInteger", None, [x.astype(np.uint8), w.astype(np.uint8)], [np.uint8(3)], name="convinteger")
    direct("conv2d_i32", 'conv2d(cast(%a, dtype="i32"), cast(%b, dtype="i32"))', [x, w],
           sum(x[:, None, :, i:i + 3, k:k + 3].astype(np.int32) * w[None, :, :, i:i + 1, k:k + 1] for i in (0, 1) for k in (0, 1)).sum(2).astype(np.int32))


def contraction():
    case("MatMul", "matmul(%a, %b)", [normal(2, 1, 3, 4), normal(5, 4, 2)])
    case("MatMul", None, [normal(4), normal(2, 4, 3)], name="matmul_vector")
    case("MatMul", None, [normal(3, 4), normal(4)], name="matmul_vector_right")
    case("MatMul", "matmul(%a, %b)", [ints(3, 4), ints(4, 2)], name="matmul_int")
    case("Gemm", None, [normal(4, 3), normal(5, 4), normal(3, 1)], transA=1, transB=1, alpha=0.5, beta=2.0)
    a, b = normal(3, 4), normal(5, 4)
    direct("dense", "dense(%a, %b)", [a, b], a @ b.T)
    case("Einsum", 'einsum(%a, %b, equation="bij,bjk->bik")', [normal(2, 3, 4), normal(2, 4, 2)], equation="bij,bjk->bik")
    case("Einsum", 'einsum(%a, %b, equation="...ij, kj -> ...ki")', [normal(2, 2, 3, 4), normal(5, 4)], name="einsum_dots", equation="...ij, kj -> ...ki")
    case("Einsum", 'einsum(%a, equation="ii")', [normal(3, 3)], name="einsum_trace", equation="ii")
    case("MatMulInteger", None, [ints(3, 4, low=0, dtype=np.uint8), ints(4, 2, low=0, dtype=np.uint8)], [np.uint8(3), np.uint8(2)])


def pool():
    a, b, c = normal(2, 3, 9), normal(1, 2, 7, 6), normal(1, 2, 4, 5, 4)
    for kind, op in {"MaxPool": "max_pool", "AveragePool": "avg_pool", "LpPool": "lp_pool"}.items():
        case(kind, f"{op}1d(%a, kernel=[3], strides=[2])", [a], name=f"{op}1d", kernel_shape=[3], strides=[2])
        case(kind, f"{op}2d(%a, kernel=[3, 2], padding=[1, 0, 1, 1], strides=[2, 1])", [b], name=f"{op}2d",
             kernel_shape=[3, 2], pads=[1, 0, 1, 1], strides=[2, 1])
        case(kind, f"{op}3d(%a, kernel=[2, 3, 2])", [c], name=f"{op}3d", kernel_shape=[2, 3, 2])
    case("MaxPool", "max_pool2d(%a, kernel=[2, 2], dilation=[2, 3])", [b], name="max_pool2d_dilated", kernel_shape=[2, 2], dilations=[2, 3])
    case("MaxPool", "max_pool2d(%a, kernel=[2, 2], strides=[2, 2], ceil=1)", [normal(1, 1, 5, 5)], name="max_pool2d_ceil",
         kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    case("AveragePool", "avg_pool2d(%a, kernel=[3, 3], padding=[1, 1, 1, 1], count_include_pad=1)", [b], name="avg_pool2d_padded",
         kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    case("LpPool", "lp_pool2d(%a, kernel=[2, 2], p=3)", [b], name="lp_pool2d_3", kernel_shape=[2, 2], p=3)
    case("GlobalAveragePool", "global_avg_pool(%a)", [c])
    case("GlobalMaxPool", "global_max_pool(%a)", [a])
    case("GlobalLpPool", "global_lp_pool(%a)", [b])
    q = ints(1, 2, 3, 3, dtype=np.int8)
    direct("global_sum_pool", "global_sum_pool(%a)", [q], q.sum((2, 3), keepdims=True, dtype=np.int32))

    def windows(x, size, how):
        out = np.empty(x.shape[:2] + tuple(size), F)
        for i in range(size[0]):
            for k in range(size[1]):
                rows = slice(i * x.shape[2] // size[0], -((-(i + 1) * x.shape[2]) // size[0]))
                columns = slice(k * x.shape[3] // size[1], -((-(k + 1) * x.shape[3]) // size[1]))
                out[:, :, i, k] = how(x[:, :, rows, columns], axis=(2, 3))
        return out

    direct("adaptive_avg_pool", "adaptive_avg_pool(%a, size=[3, 4])", [b], windows(b, (3, 4), np.mean))
    direct("adaptive_max_pool", "adaptive_max_pool(%a, size=[3, 4])", [b], windows(b, (3, 4), np.max))


def shape():
    x = normal(2, 3, 4)
    case("Flatten", "flatten(%a, axis=2)", [x], axis=2)
    case("Reshape", "reshape(%a, shape=[0, -1])", [x], [np.array([0, -1])])
    case("Transpose", "transpose(%a, axes=[2, 0, 1])", [x], perm=[2, 0, 1])
    case("Concat", "concat(%a, %b, axis=1)", [x, normal(2, 2, 4)], axis=1)
    case("Slice", "slice(%a, begin=[0, 2, 0], end=[9223372036854775807, -4, 3], step=[1, -1, 2])", [x],
         [np.array([2, 0]), np.array([-4, 3]), np.array([1, 2]), np.array([-1, 2])])
    case("Pad", "pad(%a, before=[0, 1, 2], after=[1, 0, 0], value=1.5)", [x], [np.array([0, 1, 2, 1, 0, 0]), F(1.5)])
    case("Pad", "pad_reflect(%a, before=[0, 2, 1], after=[1, 0, 3])", [x], [np.array([0, 2, 1, 1, 0, 3])], name="pad_reflect", mode="reflect")
    case("Pad", "pad_edge(%a, before=[0, 2, 1], after=[1, 0, 3])", [x], [np.array([0, 2, 1, 1, 0, 3])], name="pad_edge", mode="edge")
    case("Pad", "pad_wrap(%a, before=[0, 2, 1], after=[1, 0, 3])", [x], [np.array([0, 2, 1, 1, 0, 3])], name="pad_wrap", mode="wrap", opset=19)
    case("Pad", "pad(%a, before=[0, 0, 1], after=[0, 0, 2])", [x], [np.array([1, 2]), F(0), np.array([-1])], name="pad_axes")
    blocked = normal(1, 20, 2, 3)
    padded = np.concatenate([blocked, np.zeros((1, 12, 2, 3), F)], 1).reshape(1, 2, 16, 2, 3).transpose(0, 1, 3, 4, 2)
    direct("layout_transform", 'layout_transform(%a, from="NCHW", to="NCHW16c")', [blocked], padded)
    case("Split", "split(%a, sizes=[1, 3], axis=-1)", [x], [np.array([1, 3])], outputs=2, axis=-1)
    case("Split", "split(%a, sizes=[2, 2], axis=2)", [x], outputs=2, name="split_equal", axis=2, num_outputs=2)
    case("Split", "split(%a, sizes=[1, 2], axis=1)", [x], outputs=2, name="split_11", opset=11, axis=1, split=[1, 2])
    direct("stack", "stack(%a, %b, axis=1)", [x, x + 1], np.stack([x, x + 1], 1))
    case("Tile", "tile(%a, repeats=[1, 2, 3])", [x], [np.array([1, 2, 3])])
    case("Expand", "broadcast_to(%a, shape=[2, -1, 4])", [normal(3, 1)], [np.array([2, 1, 4])])
    case("Squeeze", "squeeze(%a, axes=[1])", [normal(2, 1, 3)], [np.array([1])])
    case("Unsqueeze", "expand_dims(%a, axes=[0, -1])", [x], [np.array([0, -1])])
    direct("reverse", "reverse(%a, axes=[0, 2])", [x], x[::-1, :, ::-1])
    case("ReverseSequence", "reverse_sequence(%a, %b)", [normal(4, 3, 2), np.array([2, 4, 0])])
    case("Trilu", "triangle(%a)", [x])
    case("Trilu", "triangle(%a, upper=0, diagonal=1)", [x], [np.int64(1)], name="trilu_lower", upper=0)
    case("DepthToSpace", "depth_to_space(%a, block=2)", [normal(1, 8, 2, 3)], blocksize=2)
    case("DepthToSpace", 'depth_to_space(%a, block=2, order="CRD")', [normal(1, 8, 2, 3)], name="depthtospace_crd", blocksize=2, mode="CRD")
    case("SpaceToDepth", "space_to_depth(%a, block=2)", [normal(1, 2, 4, 6)], blocksize=2)
    case("Shape", "shape_of(%a)", [x])
    case("Shape", None, [x], name="shape_part", start=1, end=-1)
    case("Size", None, [x])


def index():
    x, i = normal(3, 4, 2), np.array([[2, -1], [0, 1]])
    case("Gather", "gather(%a, %b, axis=1)", [x, i], axis=1)
    case("GatherElements", "gather_elements(%a, %b, axis=1)", [x, ints(2, 3, 2, low=-4, high=4, dtype=np.int64)], axis=1)
    case("GatherND", "gather_nd(%a, %b)", [x, np.array([[0, 1], [2, -1]])])
    case("GatherND", "gather_nd(%a, %b, batch_dims=1)", [x, np.array([[1], [0], [3]])], name="gathernd_batch", batch_dims=1)
    t = np.array([[0, 2, 1], [3, -1, 0]])
    u = normal(2, 3)
    case("ScatterElements", "scatter_elements(%a, %b, %c, axis=1)", [normal(3, 4), t, u], axis=1)
    twice = np.array([[0, 0, 1], [3, 3, 3]])
    for reduction in ("add", "mul", "max", "min"):
        case("ScatterElements", f'scatter_elements(%a, %b, %c, axis=1, reduction="{reduction}")', [normal(3, 4), twice, u],
             name=f"scatterelements_{reduction}", axis=1, reduction=reduction)
    case("ScatterND", "scatter_nd(%a, %b, %c)", [x, np.array([[1], [2]]), normal(2, 4, 2)])
    case("ScatterND", 'scatter_nd(%a, %b, %c, reduction="add")', [x, np.array([[1, 0], [1, 0]]), normal(2, 2)], name="scatternd_add", reduction="add")
    case("OneHot", "one_hot(%a, depth=4, on=3.0, off=-1.0)", [np.array([[0, 3], [-1, 7]])], [np.int64(4), F([-1, 3])])
    case("OneHot", "one_hot(%a, depth=3, axis=0)", [np.array([0, 2, 1])], [np.int64(3), F([0, 1])], name="onehot_axis", axis=0)


def order():
    x = ints(3, 6, low=0, high=9).astype(F)
    case("TopK", "top_k(%a, k=3)", [x], [np.array([3])], outputs=2)
    case("TopK", "top_k(%a, k=2, axis=0, largest=0)", [x], [np.array([2])], outputs=2, name="topk_smallest", axis=0, largest=0)
    direct("sort", "sort(%a)", [x], np.sort(x))
    direct("sort_down", "sort(%a, axis=0, descending=1)", [x], -np.sort(-x, 0))
    direct("arg_sort", "arg_sort(%a)", [x], np.argsort(x, kind="stable"))
    case("Unique", "unique(%a)", [x], outputs=4)
    case("Unique", "unique(%a, sorted=0)", [x], outputs=4, name="unique_unsorted", sorted=0)
    case("NonZero", "nonzero(%a)", [x])
    case("Compress", "compress(%a, %b, axis=1)", [x, np.array([True, False, True, True])], axis=1)
    corner, size = random.uniform(0, 1, (2, 8, 2)), random.uniform(0.3, 0.8, (2, 8, 2))
    boxes = np.concatenate([corner, corner + size], 2).astype(F)
    scores = random.uniform(0, 1, (2, 2, 8)).astype(F)
    case("NonMaxSuppression", "non_max_suppression(%a, %b, max_boxes=4, iou_threshold=0.3, score_threshold=0.2)", [boxes, scores],
         [np.int64(4), F(0.3), F(0.2)])
    case("NonMaxSuppression", "non_max_suppression(%a, %b, max_boxes=3, iou_threshold=0.4, centered=1)", [boxes, scores],
         [np.int64(3), F(0.4)], name="nonmaxsuppression_centered", center_point_box=1)


def create():
    direct("full", 'full(shape=[2, 3], value=7.0, dtype="i32")', [], np.full((2, 3), 7, np.int32))
    direct("arange", "arange(count=4, start=1.0, step=3.0)", [], np.arange(1, 13, 3))
    direct("eye", "eye(rows=3, columns=4, diagonal=1)", [], np.eye(3, 4, 1, dtype=F))
    case("Range", None, [], [F(1), F(3), F(0.5)])
    case("EyeLike", "eye(rows=2, columns=3)", [normal(2, 3)])
    case("ConstantOfShape", None, [], [np.array([2, 3])])
    words = lambda *values: np.array(values, np.uint32).view(np.int32)  # noqa: E731
    # Known answers of Threefry-2x32-20 (Random123 1.09, kat_vectors): key 0, counter 0.
    bits = np.array([0x6B200159, 0x99BA4EFE], np.uint32)
    direct("random_uniform", "random_uniform(%a, shape=[2])", [words(0, 0)], ((bits >> 8) * F(2.0**-24)).astype(F))

    def threefry(key, counter):
        rotations = [[13, 15, 26, 6], [17, 29, 16, 24]]
        key = [int(key[0]), int(key[1]), int(key[0]) ^ int(key[1]) ^ 0x1BD11BDA]
        mask = 0xFFFFFFFF
        x = [(counter[0] + key[0]) & mask, (counter[1] + key[1]) & mask]
        for r in range(5):
            for turn in rotations[r % 2]:
                x[0] = (x[0] + x[1]) & mask
                x[1] = ((x[1] << turn | x[1] >> (32 - turn)) & mask) ^ x[0]
            x = [(x[0] + key[(r + 1) % 3]) & mask, (x[1] + key[(r + 2) % 3] + r + 1) & mask]
        return x

    assert threefry([0, 0], [0, 0]) == [0x6B200159, 0x99BA4EFE]
    assert threefry([0xFFFFFFFF] * 2, [0xFFFFFFFF] * 2) == [0x1CB996FC, 0xBB002BE7]
    key = np.array([0x13198A2E, 0x03707344], np.uint32)
    stream = lambda purpose, count: np.array([threefry(key, [i, purpose]) for i in range(count)], np.uint32).ravel()  # noqa: E731
    direct("random_split", "random_split(%a, count=3)", [key.view(np.int32)], stream(1, 3).view(np.int32).reshape(3, 2))
    uniform = ((stream(0, 6) >> 8) * 2.0**-24).astype(F)
    direct("random_uniform_range", "random_uniform(%a, shape=[3, 4], a=-1.0, b=2.0)", [key.view(np.int32)],
           (F(-1) + F(3) * uniform).reshape(3, 4))
    direct("random_normal", "random_normal(%a, shape=[6], a=1.0, b=2.0)", [key.view(np.int32)],
           (1 + 2 * np.sqrt(-2 * np.log(1 - uniform[0::2])) * np.cos(2 * np.pi * uniform[1::2])).astype(F))
    double = (stream(0, 8).reshape(8, 2) >> [5, 6]).astype(np.uint64)
    direct("random_bernoulli", "random_bernoulli(%a, shape=[8], probability=0.25)", [key.view(np.int32)],
           (double[:, 0] * 2**26 + double[:, 1]) * 2.0**-53 < 0.25)


def image():
    x = normal(1, 2, 4, 5)
    sizes = np.array([1, 2, 7, 3])
    for mode in ("nearest", "linear", "cubic"):
        for coordinates in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"):
            case("Resize", f'resize(%a, sizes=[1, 2, 7, 3], mode="{mode}", coordinates="{coordinates}")', [x], [None, None, sizes],
                 name=f"resize_{mode}_{coordinates}", mode=mode, coordinate_transformation_mode=coordinates)
    for nearest in ("round_prefer_ceil", "floor", "ceil"):
        case("Resize", f'resize(%a, sizes=[1, 2, 7, 3], nearest="{nearest}")', [x], [None, None, sizes], name=f"resize_{nearest}", nearest_mode=nearest)
    case("Resize", 'resize(%a, scales=[1.0, 1.0, 2.0, 0.6], mode="linear")', [x], [None, F([1, 1, 2, 0.6])], name="resize_scales", mode="linear")
    case("Resize", 'resize(%a, sizes=[1, 2, 7, 3], mode="cubic", cubic=-0.5, exclude_outside=1)', [x], [None, None, sizes],
         name="resize_exclude", mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1)
    case("Resize", None, [x], [None, None, np.array([8, 10])], name="resize_axes", axes=[2, 3], mode="linear")
    case("Upsample", 'resize(%a, scales=[1.0, 1.0, 2.0, 2.0], coordinates="asymmetric", nearest="floor")', [x], [F([1, 1, 2, 2])], name="upsample", opset=9)
    grid = random.uniform(-1.3, 1.3, (1, 3, 4, 2)).astype(F)
    for mode in ("nearest", "linear", "cubic"):
        for padding in ("zeros", "border", "reflection"):
            if mode == "cubic" and padding == "reflection":
                continue
            case("GridSample", f'grid_sample(%a, %b, mode="{mode}", padding="{padding}")', [x, grid], name=f"gridsample_{mode}_{padding}",
                 mode=mode, padding_mode=padding)
    case("GridSample", 'grid_sample(%a, %b, padding="reflection", align_corners=1)', [x, grid], name="gridsample_corners",
         padding_mode="reflection", align_corners=1)
    rois, batches = F([[0, 0, 6, 5], [2, 1, 7, 7], [-3, 4, 2, 9]]), np.array([0, 1, 0])
    y = normal(2, 2, 6, 7)
    case("RoiAlign", "roi_align(%a, %b, %c, size=[2, 3], sampling_ratio=2)", [y, rois, batches], output_height=2, output_width=3, sampling_ratio=2)
    case("RoiAlign", 'roi_align(%a, %b, %c, size=[2, 2], spatial_scale=0.5, half_pixel=0, mode="max")', [y, rois, batches],
         name="roialign_max", output_height=2, output_width=2, spatial_scale=0.5, coordinate_transformation_mode="output_half_pixel", mode="max")


def recurrent():
    steps, batch, inputs, hidden = 4, 2, 3, 5
    for op, gates in {"RNN": 1, "GRU": 3, "LSTM": 4}.items():
        for direction in ("forward", "reverse", "bidirectional"):
            d = 2 if direction == "bidirectional" else 1
            state = [normal(d, batch, hidden) for _ in range(2 if op == "LSTM" else 1)]
            arguments = [normal(steps, batch, inputs), normal(d, gates * hidden, inputs), normal(d, gates * hidden, hidden),
                         normal(d, 2 * gates * hidden)] + state
            letters = "abcdef"[: len(arguments)]
            suffix = f', direction="{direction}"'
            order = [0, 1, 2, 3, len(arguments)] + list(range(4, len(arguments)))
            case(op, f"{op.lower()}({', '.join('%' + k for k in letters)}{suffix})", arguments, [None], order=order,
                 outputs=3 if op == "LSTM" else 2, name=f"{op.lower()}_{direction}", direction=direction, hidden_size=hidden)
            if op == "GRU" and direction == "forward":
                case(op, "gru(%a, %b, %c, %d, %e, reset_after=1)", arguments, [None], order=order, outputs=2, name="gru_reset_after",
                     hidden_size=hidden, linear_before_reset=1)
    case("LSTM", None, [normal(4, 2, 3), normal(1, 20, 3), normal(1, 20, 5)], outputs=3, name="lstm_plain", hidden_size=5)


def quantize():
    x, q = normal(2, 3, 4) * 3, ints(2, 3, 4, low=-128, high=128, dtype=np.int8)
    case("QuantizeLinear", 'quantize(%a, scale=[0.05], zero_point=[-3])', [x], [F(0.05), np.int8(-3)])
    case("QuantizeLinear", 'quantize(%a, scale=[0.05, 0.1, 0.2], zero_point=[1, 2, 3], dtype="u8")', [x], [F([0.05, 0.1, 0.2]), np.uint8([1, 2, 3])],
         name="quantizelinear_axis", axis=1)
    case("DequantizeLinear", "dequantize(%a, scale=[0.05], zero_point=[-3])", [q], [F(0.05), np.int8(-3)])
    case("DequantizeLinear", "dequantize(%a, scale=[0.05, 0.1, 0.2])", [q], [F([0.05, 0.1, 0.2])], name="dequantizelinear_axis", axis=1)
    case("DynamicQuantizeLinear", "dynamic_quantize(%a)", [x], outputs=3)
    case("QLinearMatMul", None, [ints(3, 4, low=0, high=255, dtype=np.uint8), ints(4, 2, low=0, high=255, dtype=np.uint8)],
         [F(0.02), np.uint8(120), F(0.03), np.uint8(130), F(0.1), np.uint8(5)], order=[0, 2, 3, 1, 4, 5, 6, 7])
    case("QLinearConv", None, [ints(1, 2, 4, 4, low=0, high=255, dtype=np.uint8)],
         [F(0.02), np.uint8(120), ints(3, 2, 2, 2, dtype=np.int8), F([0.03, 0.02, 0.01]), np.int8([0, 0, 0]), F(0.1), np.uint8(5), ints(3)], pads=[1, 0, 0, 1])
    acc, bias = ints(1, 2, 3, low=-5000, high=5000), ints(2, low=-100, high=100)
    # The multiplier 2^14 and the shift 8, before the eight fractional bits, quarter the sum.
    quarter = np.floor((acc + bias[:, None]) / 4 + 0.5)
    direct("requantize", "requantize(%a, %b, %c, %d)", [acc, bias, np.uint16([1 << 14] * 2), np.uint8([8, 8])],
           np.clip(quarter, -128, 127).astype(np.int8))
    residual = ints(1, 2, 3, low=-20, high=20, dtype=np.int8)
    direct("requantize_add", "requantize_add(%a, %b, %c, %d, %e, r_multiplier=16384, r_shift=6)",
           [acc, bias, np.uint16([1 << 14] * 2), np.uint8([8, 8]), residual],
           np.clip(np.floor((acc + bias[:, None]) / 4 + residual + 0.5), -128, 127).astype(np.int8))


def dynamic():
    case("Expand", "broadcast_dynamic(%a, %b)", [normal(3, 1), np.array([2, 1, 4])], name="expand_dynamic")


def integer_layers():
    """Many results, so that a rounding that differs is seen."""
    byte = dict(low=0, high=256, dtype=np.uint8)
    signed = dict(low=-127, high=128, dtype=np.int8)
    for name, kind, zero, result in (("u8", byte, np.uint8(120), np.uint8(100)), ("i8", signed, np.int8(0), np.int8(-3))):
        case("QLinearConv", None, [ints(2, 8, 9, 9, **kind)],
             [F(0.02), zero, ints(16, 4, 3, 3, **signed), positive(16) * F(0.01), np.zeros(16, np.int8), F(0.3), result,
              ints(16, low=-2000, high=2000)], name=f"qlinearconv_{name}", group=2, strides=[2, 2], pads=[1, 1, 1, 1])
        case("QLinearMatMul", None, [ints(20, 64, **kind), ints(64, 30, **signed)],
             [F(0.02), zero, F(0.03), np.int8(0), F(1.7), result], order=[0, 2, 3, 1, 4, 5, 6, 7], name=f"qlinearmatmul_{name}")


def recurrent_variants():
    """What few models have: peepholes, clipping, lengths, other functions, the batch in front."""
    steps, batch, inputs, hidden = 4, 3, 2, 5
    lengths = np.array([4, 1, 3], np.int32)

    def weights(op, d):
        gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
        small = F(0.5)
        arguments = [normal(steps, batch, inputs), normal(d, gates * hidden, inputs) * small, normal(d, gates * hidden, hidden) * small,
                     normal(d, 2 * gates * hidden) * small, normal(d, batch, hidden)]
        return arguments + ([normal(d, batch, hidden)] if op == "LSTM" else [])

    for op in ("RNN", "GRU", "LSTM"):
        count, outputs, lower = {"RNN": 1, "GRU": 2, "LSTM": 3}[op], 3 if op == "LSTM" else 2, op.lower()
        for direction in ("forward", "reverse", "bidirectional"):
            arguments = weights(op, 2 if direction == "bidirectional" else 1)
            names = ", ".join("%" + k for k in "abcdef"[: len(arguments)])
            # The lengths are an input of this node, and a constant of the node below.
            call = f'{lower}_ragged({names}, cast(%{"abcdefg"[len(arguments)]}, dtype="i64"), direction="{direction}")'
            order = [0, 1, 2, 3, len(arguments)] + list(range(4, len(arguments)))
            case(op, call, arguments + [lengths], order=order, outputs=outputs, name=f"{lower}_ragged_{direction}",
                 direction=direction, hidden_size=hidden)
            if direction == "reverse":
                case(op, None, arguments, [lengths], order=order, outputs=outputs, name=f"{lower}_lengths", direction=direction,
                     hidden_size=hidden, clip=0.75)
        arguments = weights(op, 1)
        names, order = ", ".join("%" + k for k in "abcdef"[: len(arguments)]), [0, 1, 2, 3, len(arguments)] + list(range(4, len(arguments)))
        case(op, f"{lower}({names}, clip=0.4)", arguments, [None], order=order, outputs=outputs, name=f"{lower}_clip", hidden_size=hidden, clip=0.4)
        # The functions alternate between cases; the two directions have different functions.
        kinds = {"Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "Softsign": "softsign", "Softplus": "softplus", "LeakyRelu": "leaky_relu",
                 "HardSigmoid": "hard_sigmoid", "Elu": "elu", "ThresholdedRelu": "thresholded_relu", "ScaledTanh": "scaled_tanh", "Affine": "affine"}
        numbers = {"LeakyRelu": (0.3, None), "HardSigmoid": (0.25, 0.4), "Elu": (0.8, None), "ThresholdedRelu": (0.3, None), "ScaledTanh": (0.7, 1.2),
                   "Affine": (0.4, 0.1)}
        for first in range(0, len(kinds), count * 2):
            d = 2 if first > 0 or op == "RNN" else 1
            functions = [list(kinds)[(first + i) % len(kinds)] for i in range(count * d)]
            alpha = [numbers.get(one, (None, None))[0] for one in functions]
            beta = [numbers.get(one, (None, None))[1] for one in functions]
            given = {"activation_alpha": [x for x in alpha if x is not None], "activation_beta": [x for x in beta if x is not None]}
            arguments = weights(op, d)
            direction = "bidirectional" if d == 2 else "forward"
            call = (f'{lower}({names}, direction="{direction}", activations="{",".join(kinds[one] for one in functions)}", '
                    f'alpha={[x or 0.0 for x in alpha]}, beta={[x or 0.0 for x in beta]})')
            case(op, call, arguments, [None], order=order, outputs=outputs, name=f"{lower}_functions_{first}", direction=direction,
                 hidden_size=hidden, activations=functions, **{key: value for key, value in given.items() if value})
        # ONNX's evaluator supports a leading batch axis for a single direction, ONNX Runtime for none.
        x, w, r, b = (normal(batch, steps, inputs), *weights(op, 1)[1:4])
        case(op, None, [x, w, r, b], outputs=outputs, name=f"{lower}_batch_first", hidden_size=hidden, layout=1)
    case("RNN", None, weights("RNN", 1)[:4], outputs=2, name="rnn_usual_numbers", hidden_size=hidden, activations=["LeakyRelu"])
    for d, direction in ((1, "reverse"), (2, "bidirectional")):
        arguments, peepholes = weights("LSTM", d), normal(d, 3 * hidden)
        for name, call, extra in (("", "", {}), ("_clip", ", clip=0.5", {"clip": 0.5}), ("_coupled", ", input_forget=1", {"input_forget": 1})):
            case("LSTM", f'lstm(%a, %b, %c, concat(%d, %g, axis=1), %e, %f, direction="{direction}"{call})', arguments + [peepholes], [None],
                 order=[0, 1, 2, 3, 7, 4, 5, 6], outputs=3, name=f"lstm_peepholes_{direction}{name}", direction=direction, hidden_size=hidden, **extra)


def computed_scales():
    """Scales and zero points that are inputs, and what quantize_dynamic makes of small networks; none of it is a layer of integers."""
    u8, i8 = dict(low=0, high=256, dtype=np.uint8), dict(low=-128, high=128, dtype=np.int8)
    case("MatMulInteger", None, [ints(2, 3, 7, **u8), np.uint8(120)], [ints(7, 5, **i8), np.int8([3, 0, -4, 1, 2])],
         order=[0, 2, 1, 3], name="matmulinteger_computed")
    case("MatMulInteger", None, [ints(3, 9, **u8), ints(9, 4, **u8), np.uint8([200]), np.uint8(7)], name="matmulinteger_both_computed")
    case("MatMulInteger", None, [ints(3, 9, **u8), ints(9, 4, **i8), np.uint8([[200], [3], [90]]), np.int8([1, 2, -3, 4])],
         name="matmulinteger_vectors_computed")
    case("ConvInteger", None, [ints(2, 4, 7, 6, **u8), np.uint8(77)], [ints(6, 2, 3, 3, **u8), np.uint8(130)], order=[0, 2, 1, 3],
         name="convinteger_computed", group=2, pads=[1, 0, 2, 1], strides=[2, 1])
    case("ConvInteger", None, [ints(1, 3, 5, **i8), ints(4, 3, 2, **i8), np.int8(-9), np.int8(5)], name="convinteger_both_computed")
    x = normal(2, 3, 4) * 3
    case("QuantizeLinear", None, [x, F(0.05), np.int8(-3)], name="quantizelinear_computed")
    case("QuantizeLinear", None, [x, F([0.05, 0.1, 0.2])], name="quantizelinear_axis_computed", axis=-2)
    case("DequantizeLinear", None, [ints(2, 3, 4, **i8), F([0.05, 0.1, 0.2]), np.int8([-3, 0, 7])], name="dequantizelinear_axis_computed")
    case("DequantizeLinear", None, [ints(2, 3, low=-10**6, high=10**6), F(0.05)], name="dequantizelinear_sums_computed")
    case("QLinearMatMul", None, [ints(3, 4, **u8), F(0.02), np.uint8(120), ints(4, 2, **u8), F(0.03), np.uint8(130), F(0.1), np.uint8(5)],
         name="computed_qlinearmatmul")
    case("QLinearConv", None, [ints(1, 2, 4, 4, **u8), F(0.0217), F(0.113)],
         [np.uint8(120), ints(3, 2, 2, 2, dtype=np.int8), F([0.031, 0.0207, 0.0113]), np.int8([0, 0, 0]), np.uint8(5), ints(3)],
         order=[0, 1, 3, 4, 5, 6, 2, 7, 8], name="computed_qlinearconv", pads=[1, 0, 0, 1])

    def dynamic_network(name, x, nodes, weights, **options):
        graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
                                  [onnx.ValueInfoProto(name="y")], [numpy_helper.from_array(w, k) for k, w in weights.items()])
        with tempfile.TemporaryDirectory() as folder:
            real, small = f"{folder}/real.onnx", f"{folder}/small.onnx"
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=8), real)
            quantize_dynamic(real, small, **options)
            model = onnx.load(small).SerializeToString()
        found = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": x})
        store(name, None, [x], found, model)

    node = helper.make_node
    layers = [node("MatMul", ["x", "w0"], ["a"]), node("Add", ["a", "b0"], ["b"]), node("Relu", ["b"], ["c"]),
              node("Gemm", ["c", "w1", "b1"], ["y"], transB=1)]
    weights = {"w0": normal(6, 16), "b0": normal(16), "w1": normal(5, 16), "b1": normal(5)}
    dynamic_network("dynamic_mlp", normal(3, 6), layers, weights)
    dynamic_network("dynamic_mlp_channels", normal(3, 6), layers, weights, per_channel=True, weight_type=QuantType.QInt8)
    layers = [node("Conv", ["x", "w0", "b0"], ["a"], pads=[1, 1, 1, 1]), node("Relu", ["a"], ["b"]),
              node("Conv", ["b", "w1"], ["c"], strides=[2, 2]), node("Flatten", ["c"], ["d"]), node("MatMul", ["d", "w2"], ["y"])]
    weights = {"w0": normal(4, 2, 3, 3), "b0": normal(4), "w1": normal(3, 4, 2, 2), "w2": normal(27, 4)}
    dynamic_network("dynamic_conv", normal(1, 2, 6, 6), layers, weights, weight_type=QuantType.QUInt8)


def attention():
    """Attention, and what language models use beside it."""
    q, k, v = normal(2, 4, 3, 8), normal(2, 2, 5, 8), normal(2, 2, 5, 6)
    case("Attention", None, [q, k, v], opset=23, name="attention_groups")
    case("Attention", None, [q, k, v, normal(3, 5)], opset=23, name="attention_mask_cap", softcap=2.0, scale=0.3)
    case("Attention", None, [q, k, v, normal(3, 5) > 0.2], opset=23, name="attention_bool", is_causal=1)
    case("Attention", None, [normal(2, 3, 32), normal(2, 5, 16), normal(2, 5, 12), normal(2, 2, 4, 8), normal(2, 2, 4, 6)], opset=23, outputs=3,
         order=[0, 1, 2, -1, 3, 4], constants=[None], name="attention_past", q_num_heads=4, kv_num_heads=2, is_causal=1)
    angles = normal(7, 3)
    case("RotaryEmbedding", None, [normal(2, 4, 3, 8), np.cos(angles), np.sin(angles), ints(2, 3, low=0, high=7, dtype=np.int64)], opset=23,
         name="rotary", rotary_embedding_dim=6)
    case("RotaryEmbedding", None, [normal(2, 3, 24), np.cos(normal(2, 3, 4)), np.sin(normal(2, 3, 4))], opset=23, name="rotary_flat", num_heads=3, interleaved=1)
    case("Swish", None, [normal(3, 4)], opset=24, name="swish_alpha", alpha=0.5)
    case("TensorScatter", None, [normal(2, 3, 5, 4), normal(2, 3, 2, 4), np.int64([4, 1])], opset=24, mode="circular")


def losses():
    x, classes = normal(3, 5, 2), ints(3, 2, low=0, high=5, dtype=np.int64)
    for reduction in ("none", "sum", "mean"):
        case("NegativeLogLikelihoodLoss", None, [x, classes], [positive(5)], opset=13, name=f"nll_{reduction}", reduction=reduction)
        case("SoftmaxCrossEntropyLoss", None, [x, classes], opset=13, outputs=2, name=f"cross_entropy_{reduction}", reduction=reduction)
    case("SoftmaxCrossEntropyLoss", None, [x, np.where(classes == 2, -1, classes)], opset=13, name="cross_entropy_ignore", ignore_index=-1)
    case("NegativeLogLikelihoodLoss", None, [x[:, :, 0], classes[:, 0].astype(np.int32)], [positive(5)], opset=13, name="nll_ignore", ignore_index=2)


def signal():
    x = normal(2, 10, 3, 1)
    case("DFT", None, [x], [None, np.int64(1)], opset=20, name="dft")
    case("DFT", None, [x], [np.int64(12), np.int64(1)], opset=20, name="dft_padded", onesided=1)
    case("DFT", None, [normal(2, 10, 3, 2)], [np.int64(7), np.int64(-2)], opset=20, name="dft_inverse", inverse=1)
    case("DFT", None, [normal(9, 2)], opset=17, name="dft_17", axis=0)
    case("STFT", None, [normal(2, 40, 1)], [np.int64(6), positive(8)], opset=17, name="stft")
    case("STFT", None, [normal(1, 30, 2)], [np.int64(4), None, np.int64(9)], opset=17, name="stft_complex", onesided=0)
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        case(op, None, [], [np.int64(9)], opset=17)
        case(op, None, [], [np.int64(8)], opset=17, name=op.lower() + "_symmetric", periodic=0)
    case("MelWeightMatrix", None, [], [np.int64(7), np.int64(64), np.int64(16000), F(20), F(7600)], opset=17)
    case("CumProd", "cumprod(%a, axis=1)", [normal(2, 3)], [np.int64(1)], opset=26, name="cumprod_26")


def vision():
    case("Resize", 'resize(%a, sizes=[1, 2, 3, 5], mode="linear", antialias=1)', [normal(1, 2, 7, 8)], [None, None, np.int64([1, 2, 3, 5])], opset=18,
         name="resize_antialias", mode="linear", antialias=1)
    case("Resize", 'resize(%a, sizes=[1, 1, 4, 3], mode="cubic", antialias=1, exclude_outside=1)', [normal(1, 1, 9, 8)], [None, None, np.int64([1, 1, 4, 3])],
         opset=18, name="resize_antialias_cubic", mode="cubic", antialias=1, exclude_outside=1)
    case("Resize", None, [normal(1, 1, 6, 4)], [None, None, np.int64([7, 8])], opset=18, name="resize_not_larger", axes=[2, 3], mode="linear",
         keep_aspect_ratio_policy="not_larger")
    volume = np.random.default_rng(5).uniform(-1.2, 1.2, (1, 2, 3, 2, 3)).astype(F)
    case("GridSample", "grid_sample(%a, %b)", [normal(1, 2, 3, 4, 5), volume], opset=20, name="gridsample_volume")
    case("GridSample", 'grid_sample(%a, %b, mode="nearest", padding="border", align_corners=1)', [normal(1, 2, 3, 4, 5), volume], opset=20,
         name="gridsample_volume_nearest", mode="nearest", padding_mode="border", align_corners=1)
    parts = ints(4, 3, low=0, high=2)[:, [0, 1, 1, 2]]
    case("Unique", "unique(%a, axes=[1])", [parts], outputs=4, name="unique_axis", axis=1)
    case("MaxPool", None, [normal(1, 2, 5, 6)], outputs=2, name="maxpool_indices", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])
    case("LayerNormalization", None, [normal(2, 3, 5), normal(5), normal(5)], outputs=3, name="layernormalization_statistics", opset=17)
    case("AffineGrid", None, [normal(2, 2, 3)], [np.int64([2, 1, 3, 4])], opset=20)
    case("AffineGrid", None, [normal(1, 3, 4)], [np.int64([1, 1, 2, 3, 4])], opset=20, name="affinegrid_3d", align_corners=1)
    case("CenterCropPad", None, [normal(5, 8, 3)], [np.int64([8, 3])], opset=18, axes=[0, -2])
    case("Col2Im", None, [normal(2, 12, 9)], [np.int64([5, 6]), np.int64([2, 3])], opset=18, pads=[1, 0, 0, 1], strides=[2, 1], dilations=[1, 2])
    case("DeformConv", None, [normal(2, 4, 5, 6), normal(6, 2, 3, 2), normal(2, 24, 3, 6)], [normal(6), positive(2, 12, 3, 6)], opset=19,
         group=2, offset_group=2, pads=[1, 0, 2, 1], strides=[2, 1], dilations=[1, 1], kernel_shape=[3, 2])
    values = normal(1, 2, 2, 2)
    case("MaxUnpool", None, [values, np.int64([0, 3, 9, 14, 16, 19, 26, 31]).reshape(1, 2, 2, 2)], opset=11, kernel_shape=[2, 2], strides=[2, 2])


def microsoft():
    """Operators that ONNX Runtime's quantizer and its optimizer for transformers write."""
    ms = dict(domain="com.microsoft")
    u8, i8 = dict(low=0, high=256, dtype=np.uint8), dict(low=-128, high=128, dtype=np.int8)
    case("Gelu", None, [normal(3, 4)], name="ms_gelu", **ms)
    case("FastGelu", None, [normal(3, 4), normal(4)], name="ms_fastgelu", **ms)
    case("BiasGelu", None, [normal(3, 4), normal(4)], name="ms_biasgelu", **ms)
    case("QuickGelu", None, [normal(3, 4)], name="ms_quickgelu", **ms)
    case("FusedMatMul", None, [normal(2, 4, 3), normal(2, 5, 4)], name="ms_fusedmatmul", alpha=0.5, transA=1, transB=1, **ms)
    case("FusedMatMul", None, [normal(4, 2, 3), normal(2, 3, 5)], name="ms_fusedmatmul_batch", transBatchA=1, **ms)
    case("FusedGemm", None, [normal(3, 4), normal(4, 5), normal(5)], name="ms_fusedgemm", alpha=0.5, beta=2.0, activation="LeakyRelu", activation_alpha=0.25, **ms)
    case("FusedConv", None, [normal(1, 2, 5, 5)], [normal(3, 2, 3, 3), normal(3)], name="ms_fusedconv", activation="Relu", kernel_shape=[3, 3], **ms)
    x, g, b = normal(2, 3, 8), normal(8), normal(8)
    case("SkipLayerNormalization", None, [x, normal(2, 3, 8)], [g, b, normal(8)], name="ms_skiplayernorm", epsilon=1e-5, **ms)
    case("SkipSimplifiedLayerNormalization", None, [x, normal(2, 3, 8)], [g], name="ms_skiprmsnorm", epsilon=1e-5, **ms)
    case("SimplifiedLayerNormalization", None, [x], [g], name="ms_rmsnorm", epsilon=1e-5)
    case("EmbedLayerNormalization", None, [ints(2, 3, low=0, high=9), ints(2, 3, low=0, high=2)], [normal(9, 8), normal(4, 8), normal(2, 8), g, b],
         name="ms_embedlayernorm", epsilon=1e-5, outputs=2, **ms)
    case("Attention", None, [x, np.int32([[1, 1, 0], [1, 1, 1]])], [normal(8, 24), normal(24)], order=[0, 2, 3, 1], name="ms_attention", num_heads=2, **ms)
    case("Attention", None, [x, normal(2, 2, 2, 5, 4)], [normal(8, 24), normal(24), None], order=[0, 2, 3, 4, 1], outputs=2, name="ms_attention_past", num_heads=2, unidirectional=1, **ms)
    case("MultiHeadAttention", None, [x, normal(2, 5, 8), normal(2, 5, 12), normal(1, 2, 3, 5)], [None, None], order=[0, 1, 2, 4, 5, 3], name="ms_multihead", num_heads=2, **ms)
    angles = normal(7, 2)
    case("RotaryEmbedding", None, [normal(2, 2, 3, 4), ints(2, 3, low=0, high=7, dtype=np.int64)], [np.cos(angles), np.sin(angles)], name="ms_rotary", **ms)
    case("QAttention", None, [ints(2, 3, 8, **u8), np.int32([3, 2])], [ints(8, 24, **i8), normal(24), F(0.02), F(0.03), np.uint8(120), np.int8(3)],
         order=[0, 2, 3, 4, 5, 1, 6, 7], name="ms_qattention", num_heads=2, **ms)
    a, c = ints(2, 3, 4, **u8), ints(3, 4, **u8)
    scale = lambda s, z: [F(s), np.uint8(z)]
    for op, result in {"QLinearAdd": scale(0.07, 100), "QLinearMul": scale(0.15, 110)}.items():
        case(op, None, [a, c], scale(0.03, 120) + scale(0.05, 128) + result, order=[0, 2, 3, 1, 4, 5, 6, 7], name="ms_" + op.lower(), **ms)
    case("QLinearConcat", None, [a, ints(2, 1, 4, **u8)], scale(0.05, 128) + scale(0.05, 128) + scale(0.02, 30), order=[2, 3, 0, 4, 5, 1, 6, 7], name="ms_qlinearconcat", axis=1, **ms)
    case("QLinearSigmoid", None, [a], scale(0.03, 128) + scale(1 / 256, 0), name="ms_qlinearsigmoid", **ms)
    case("QLinearLeakyRelu", None, [a], scale(0.03, 128) + scale(0.02, 40), name="ms_qlinearleakyrelu", alpha=0.1, **ms)
    case("QLinearSoftmax", None, [a], scale(0.03, 128) + scale(1 / 256, 0), name="ms_qlinearsoftmax", axis=-1, more={"opset": 13}, **ms)
    case("QLinearGlobalAveragePool", None, [ints(2, 3, 4, 4, **u8)], scale(0.03, 128) + scale(0.02, 100), name="ms_qlinearglobalaveragepool", **ms)
    case("QLinearAveragePool", None, [ints(2, 3, 5, 5, **u8)], scale(0.03, 128) + scale(0.02, 100), name="ms_qlinearaveragepool", kernel_shape=[2, 2], strides=[2, 1], **ms)
    case("QGemm", None, [ints(3, 4, **u8)], scale(0.03, 128) + [ints(4, 5, **i8), F(0.02), np.int8(0), ints(5, low=-900, high=900)] + scale(0.04, 120), name="ms_qgemm", **ms)
    case("QGemm", None, [ints(3, 4, **u8)], scale(0.03, 128) + [ints(5, 4, **i8), F([0.02, 0.03, 0.01, 0.02, 0.05]), np.int8([0, 1, 0, 2, 0])], name="ms_qgemm_real", transB=1, **ms)
    case("DynamicQuantizeMatMul", None, [normal(2, 3, 4)], [ints(4, 5, **u8), F(0.02), np.uint8(120), normal(5)], name="ms_dynamicquantizematmul", **ms)
    case("MatMulIntegerToFloat", None, [ints(2, 3, 4, **u8), F(0.03), np.uint8(99)], [ints(4, 5, **u8), F(0.02), np.uint8(120), normal(5)], order=[0, 3, 1, 4, 2, 5, 6],
         name="ms_matmulintegertofloat", **ms)


def narrow():
    x = np.concatenate([normal(3, 8) * F(10.0) ** np.arange(-3, 5, dtype=F), F([[0, -0.0, 1e6, -1e6, 0.3, np.nan, 7, 460]])])
    for dtype in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn", "float8_e8m0fnu"):
        ours = dtype.replace("float", "f").replace("_", "").replace("fnu", "") if dtype[-1] == "u" else dtype.replace("float", "f").replace("_", "")
        ours = "f4e2m1" if dtype.startswith("float4") else ours
        given = np.abs(x[:3]) if dtype == "float8_e8m0fnu" else x
        direct(f"cast_{ours}", f'cast(cast(%a, dtype="{ours}", saturate=0), dtype="f32")', [given], given.astype(ml_dtypes.__dict__[dtype]).astype(F))
    wide = ints(4, 6, low=-40, high=40)
    for dtype in ("int4", "uint4", "int2", "uint2"):
        ours = dtype.replace("uint", "u").replace("int", "i")
        direct(f"cast_{ours}", f'cast(cast(%a, dtype="{ours}"), dtype="i32")', [wide], wide.astype(np.int8).astype(ml_dtypes.__dict__[dtype]).astype(np.int32))
    direct("bitcast", 'bitcast(%a, dtype="i32")', [x], x.view(np.int32))
    direct("bitcast_narrow", 'cast(bitcast(cast(%a, dtype="u4"), dtype="i4"), dtype="i32")', [wide], ((wide & 15) - 16 * ((wide & 15) > 7)).astype(np.int32))
    case("Det", "det(%a)", [normal(2, 4, 4)])
    case("Det", "det(%a)", [F([[0, 2], [3, 1]])], name="det_pivot")
    four = ints(6, 16, low=-8, high=8).astype(ml_dtypes.int4)
    case("DequantizeLinear", None, [], [four, positive(6, 4), ints(6, 4, low=-8, high=8).astype(ml_dtypes.int4)], name="dequantize_blocks", axis=1, block_size=4)
    case("DequantizeLinear", None, [], [four, positive(6), ints(6, low=-8, high=8).astype(ml_dtypes.int4)], name="dequantize_i4", axis=0)
    case("QuantizeLinear", None, [normal(3, 5) * 9000], [F(0.3), np.uint16(30000)], name="quantize_u16")
    blocks = dict(domain="com.microsoft", K=40, N=6, bits=4, block_size=16)
    packed, scales = ints(6, 3, 8, low=0, high=256, dtype=np.uint8), positive(6 * 3)
    case("MatMulNBits", None, [normal(2, 3, 40)], [packed, scales], name="ms_matmulnbits", **blocks)
    case("MatMulNBits", None, [normal(2, 3, 40)], [packed, scales, ints(6 * 2, low=0, high=256, dtype=np.uint8)], name="ms_matmulnbits_zeros", **blocks)
    grams = dict(max_gram_length=2, max_skip_count=3, ngram_counts=[0, 4], ngram_indexes=[0, 1, 2, 3, 4, 5, 6], pool_int64s=[2, 3, 5, 4, 5, 6, 7, 8, 6, 7])
    words = ints(3, 12, low=2, high=9)
    weights = [0.5, 1.5, 2.0, 1.0, 3.0, 0.25, 4.0]
    for mode in ("TF", "IDF", "TFIDF"):
        case("TfIdfVectorizer", None, [words], name="tfidf_" + mode.lower(), mode=mode, min_gram_length=1, weights=weights, **grams)
    case("TfIdfVectorizer", None, [words[0]], name="tfidf_vector", mode="TF", min_gram_length=2, **grams)


def optimized():
    """Operators that ONNX Runtime's optimizer writes for language models, and those that its quantizer makes of them."""
    ms = dict(domain="com.microsoft")
    u8 = dict(low=0, high=256, dtype=np.uint8)
    angles = np.outer(np.arange(12), F([1, 0.5, 0.25, 0.1, 0.05, 0.01, 0.005, 0.001])).astype(F)
    q, k, v = normal(2, 3, 64), normal(2, 3, 32), normal(2, 3, 32)
    past = [normal(2, 2, 4, 16), normal(2, 2, 4, 16)]
    rotary = [np.cos(angles), np.sin(angles)]
    grouped = dict(num_heads=4, kv_num_heads=2, **ms)
    order = [0, 1, 2, 3, 4, 5, 6, 7, 8]
    one = [value[:1] for value in (q, k, v, *past)]
    case("GroupQueryAttention", None, [*one, np.int32([6])], [np.int32(7), *rotary], order=order, name="ms_gqa", do_rotary=1, outputs=3, **grouped)
    step = [value[:, :1] for value in (q, k, v)]
    case("GroupQueryAttention", None, [*step, *past, np.int32([4, 2])], [np.int32(5), *rotary], order=order, name="ms_gqa_lengths", unused=2, do_rotary=1, rotary_interleaved=1, local_window_size=3, **grouped)
    case("GroupQueryAttention", None, [np.concatenate([q, k, v], 2), np.int32([2, 2])], [None, np.int32(3)], order=[0, 2, 2, 2, 2, 1, 3], name="ms_gqa_packed", softcap=5.0, **grouped)
    ids, kinds = ints(2, 4, low=0, high=9), ints(2, 4, low=0, high=2)
    tables = [ints(9, 16, **u8), ints(6, 16, **u8), ints(2, 16, **u8), ints(16, **u8), ints(16, **u8)]
    scales, zeros = [F(s) for s in (0.02, 0.03, 0.01, 0.02, 0.015)], [np.uint8(z) for z in (120, 128, 100, 90, 130)]
    case("QEmbedLayerNormalization", None, [ids, kinds], [*tables, None, *scales, *zeros], name="ms_qembed", outputs=2, **ms)
    for bits, width, zero in ((4, 32, None), (4, 32, ints(10, 2, **u8)), (8, 64, None)):
        case("GatherBlockQuantized", None, [ints(2, 3, low=0, high=10)], [ints(10, width, **u8), positive(10, 64 // 16)] + ([] if zero is None else [zero]),
             order=[1, 0, 2] + ([] if zero is None else [3]), name=f"ms_gather{bits}{'' if zero is None else '_zeros'}", bits=bits, block_size=16, quantize_axis=1, **ms)
    case("DequantizeLinear", None, [ints(3, 4, low=0, high=65536, dtype=np.uint16)], [F(0.01), np.uint16(32768)], name="ms_dequantize_u16", **ms)
    case("QuantizeLinear", None, [normal(3, 4)], [F(0.01), np.uint16(32768)], name="ms_quantize_u16", **ms)
    case("Trilu", None, [normal(4, 4)], name="ms_trilu", upper=0, **ms)
    # Operators of GPUs: their definitions.
    x, bias, skip = normal(2, 3, 8), normal(8), normal(2, 3, 8)
    gelu = lambda t: t * F(0.5) * (F(1) + F(1) * np.vectorize(__import__("math").erf)(t / np.sqrt(2)).astype(F))
    tanh_gelu = lambda t: F(0.5) * t * (1 + np.tanh(np.sqrt(2 / np.pi).astype(F) * (t + F(0.044715) * t ** 3)))
    softmax = lambda t: np.exp(t - t.max(-1, keepdims=True)) / np.exp(t - t.max(-1, keepdims=True)).sum(-1, keepdims=True)
    s = x + bias
    defined("BiasAdd", [x, bias, skip], [x + bias + skip])
    defined("BiasSplitGelu", [x, bias], [s[..., :4] * gelu(s[..., 4:])])
    w = normal(8, 5)
    defined("GemmFastGelu", [x, w, normal(5)], lambda a, b, c: [tanh_gelu(a @ b + c)])
    defined("BiasSoftmax", [normal(2, 2, 3, 4), normal(2, 1, 1, 4)], lambda a, b: [softmax(a + b)], axis=3, is_inner_broadcast=0)
    image, gamma, beta = normal(2, 3, 3, 6), normal(6), normal(6)

    def group_norm(t, groups):  # channels last
        parts = t.reshape(2, 9, groups, 6 // groups)
        mean, variance = parts.mean((1, 3), keepdims=True), parts.var((1, 3), keepdims=True)
        return ((parts - mean) / np.sqrt(variance + 1e-5)).reshape(t.shape) * gamma + beta

    y = group_norm(image, 2)
    defined("GroupNorm", [image, gamma, beta], [y / (1 + np.exp(-y))], groups=2, activation=1, epsilon=1e-5)
    other = normal(2, 6)
    total = image + other[:, None, None] + gamma
    defined("SkipGroupNorm", [image, gamma, beta, other, gamma], [group_norm(total, 3), total], groups=3, activation=0, epsilon=1e-5)


for family in (elementwise, binary, reduce, normalize, convolution, contraction, pool, shape, index, order, create, image, recurrent, quantize,
               dynamic, integer_layers, recurrent_variants, computed_scales, attention, losses, signal, vision, microsoft, narrow, optimized):
    family()
target = pathlib.Path(__file__).parent / "cases.npz"
np.savez_compressed(target, **archive)
print(f"{target}: {len({key.split('/')[0] for key in archive})} cases, {target.stat().st_size} bytes")
