#!/usr/bin/env python3
"""Generates models of one ONNX operator each, with the results of ONNX Runtime and of onnx's reference evaluator.

    python3 -m venv venv && venv/bin/pip install numpy==2.4.6 onnx==1.23.2 onnxruntime==1.31.0
    venv/bin/python tests/onnx/generate.py FOLDER --models 20000 [--seed 1] [--first 0] [--only OPERATOR]

A model is a folder of the form of ONNX's backend tests: model.onnx, and a test_data_set for each judge whose result
differs from that of the judges before it. The operator, its opset of 7 to 23, the types, the attributes, the sizes (0 and
1 among them), which inputs are constants and which sizes the model leaves open are drawn; a model is determined by the
seed and its index. The schema says which types and attributes there are; what it leaves to prose (which sizes fit
together) is said by one function for each kind of operator below. Models that no judge computes are drawn again.

Models are made in child processes: a judge that crashes costs the one model.
"""
import argparse
import copy
import inspect
import multiprocessing
import os
import pathlib
import shutil
import sys
import warnings

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, defs, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OPSETS = range(7, 24)
FLOATS = ("float16", "float", "double", "bfloat16")
# Neither a tensor of Tenon nor one of most devices: drawn rarely, and refused with a message.
FOREIGN = ("string", "complex64", "complex128")

# Where an evaluator is no judge, with the reason: a condition on the drawn node, or all of them.
NO_JUDGE = {
    # Sums over the channels as if there were as many as images.
    ("reference", "LRN"): None,
    # Rounds after the zero point is added, where QuantizeLinear rounds before: ties to even differ.
    ("reference", "QLinearConv"): None,
    # Ignore sequence_lens, clip and input_forget.
    ("reference", "LSTM"): None,
    ("reference", "GRU"): None,
    ("reference", "RNN"): None,
    # Does not flatten the axes from `axis` on, as opsets before 13 do.
    ("reference", "Hardmax"): lambda d: d.opset < 13,
    ("reference", "Softmax"): lambda d: d.opset < 13,
    ("reference", "LogSoftmax"): lambda d: d.opset < 13,
    # Its weights and coordinates of integers are integers; its resized integers are rounded, ONNX Runtime's truncated.
    ("reference", "GridSample"): lambda d: not is_float(d.values[0].dtype),
    # With tf_crop_and_resize, it takes the scaled size before it is rounded down.
    ("reference", "Resize"): lambda d: not is_float(d.values[0].dtype) or
    d.attrs.get("coordinate_transformation_mode") == "tf_crop_and_resize" and len(d.values) < 4,
    # Keeps NaN or drops it by its position in a vector.
    ("ONNX Runtime", "GlobalMaxPool"): lambda d: d.special,
    # Its padding of auto_pad is that of SAME_UPPER, and another one where windows are smaller than their stride.
    ("reference", "MaxPool"): lambda d: d.attrs.get("auto_pad", "NOTSET").startswith("SAME"),
    ("reference", "AveragePool"): lambda d: d.attrs.get("auto_pad", "NOTSET").startswith("SAME"),
    ("reference", "LpPool"): lambda d: d.attrs.get("auto_pad", "NOTSET").startswith("SAME"),
    # Its results are smaller than the size times the stride, which ONNX asks for, where kernels are smaller than the stride.
    ("ONNX Runtime", "ConvTranspose"): lambda d: d.attrs.get("auto_pad", "NOTSET").startswith("SAME"),
    # Its padding of auto_pad ignores the dilation.
    ("ONNX Runtime", "MaxPool"): lambda d: d.attrs.get("auto_pad", "NOTSET").startswith("SAME") and "dilations" in d.attrs,
    ("reference", "QLinearMatMul"): None,
    # Subtracts the zero points of rows from columns.
    ("reference", "MatMulInteger"): lambda d: any(v is not None and v.ndim == 1 for v in d.values[2:]),
    # The transposed padding is negative where kernels are smaller than the stride: another element is the first one.
    ("reference", "ConvTranspose"): lambda d: d.attrs.get("auto_pad", "NOTSET").startswith("SAME"),
    # Sorts also where `sorted` is 0.
    ("reference", "Unique"): lambda d: d.attrs.get("sorted") == 0,
    # Computes integers as f32, in which erf(4) is 1.
    ("reference", "Erf"): lambda d: not is_float(d.values[0].dtype),
    # Truncates sums of f32 that are next to integers.
    # Copies x where the regions of tf_crop_and_resize have its sizes.
    ("ONNX Runtime", "Resize"): lambda d: d.attrs.get("coordinate_transformation_mode") == "tf_crop_and_resize" or
    not is_float(d.values[0].dtype) and d.attrs.get("mode", "nearest") != "nearest",
    ("ONNX Runtime", "Upsample"): lambda d: not is_float(d.values[0].dtype) and d.attrs.get("mode", "nearest") != "nearest",
    # Its exponentials of integers are integers.
    ("ONNX Runtime", "ReduceLogSumExp"): lambda d: not is_float(d.values[0].dtype),
}
# Where NaN and infinity are not defined by ONNX: a maximum over windows, which judges have by the position of NaN, the statistics of elements among which they are, and interpolation,
# where an element of weight 0 is skipped or multiplied, as the zeros of padded convolutions are.
NO_SPECIAL = ("Hardmax", "Col2Im", "MaxRoiPool", "Conv", "ConvTranspose", "DeformConv", "MaxPool", "LRN", "LayerNormalization", "InstanceNormalization", "GroupNormalization", "MeanVarianceNormalization",
              "LpNormalization", "Resize", "Upsample")


class Skip(Exception):
    """What was drawn has no model, as a size that no input has."""


def dtype_of(name):
    """The NumPy dtype of 'float', as it stands in 'tensor(float)'."""
    return helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(name.upper()))


def is_float(dtype):
    return dtype.kind == "f" or dtype.name.startswith(("bfloat", "float8", "float4"))


class Draw:
    """The random values of one node; `values` are its inputs, None for one that is left out."""

    def __init__(self, random, schema, opset, special=0.04):
        self.random, self.schema, self.opset = random, schema, opset
        self.bound, self.attrs, self.values, self.constant, self.data, self.outputs = {}, {}, [], [], [], 1
        self.special = random.random() < special and schema.name not in NO_SPECIAL
        self.coarse = random.random() < 0.5
        self.open = random.random() < 0.25

    # --- draws
    def chance(self, p=0.5):
        return self.random.random() < p

    def integer(self, low, high):
        return int(self.random.integers(low, high + 1))

    def one(self, *values):
        return values[self.integer(0, len(values) - 1)]

    def size(self, low=0):
        p = self.random.random()
        return max(low, 0 if p < 0.04 else 1 if p < 0.2 else self.integer(2, 5))

    def shape(self, rank=None, low=0, least=0, most=4):
        rank = self.integer(least, most) if rank is None else rank
        return [self.size(low) for _ in range(rank)]

    def broadcast(self, shape):
        """A shape that is broadcast to this one."""
        shape = [1 if self.chance(0.25) else n for n in shape]
        return shape[self.integer(0, len(shape)):] if self.chance(0.3) else shape

    # --- types
    def formal(self, i):
        inputs = self.schema.inputs
        return inputs[min(i, len(inputs) - 1)]

    def type_named(self, text, only=None):
        """The dtype of a type of the schema: 'tensor(float)', or a type variable, which is bound at its first use."""
        if "(" in text:
            return dtype_of(text[text.rindex("(") + 1:].rstrip(")"))
        if text not in self.bound:
            allowed = next(c.allowed_type_strs for c in self.schema.type_constraints if c.type_param_str == text)
            names = [t[7:-1] for t in allowed if t.startswith("tensor(")]
            names = [n for n in names if n not in FOREIGN or self.chance(0.01)]
            names = [n for n in names if not only or only(dtype_of(n))]
            if not names:
                raise Skip
            # Eight narrow types would otherwise be most of what is drawn.
            narrow = [n for n in names if n.startswith("float8") or n[-1] == "4" and n[-2] in "t2" or n.endswith("int2")]
            if narrow and len(narrow) < len(names) and self.chance(0.85):
                names = [n for n in names if n not in narrow]
            self.bound[text] = dtype_of(self.one(*names))
        return self.bound[text]

    def dtype(self, i, only=None):
        return self.type_named(self.formal(i).type_str, only)

    # --- values
    def numbers(self, dtype, shape, low=-4.0, high=4.0):
        shape = tuple(shape)
        if dtype.kind == "b":
            return self.random.random(shape) < 0.5
        if dtype.kind in "OSU":
            words = np.array(["", "a", "B c", "tenon", "1.5"], object)
            return words[self.random.integers(0, 5, shape)].reshape(shape)
        if dtype.kind == "c":
            return (self.random.standard_normal(shape) + 1j * self.random.standard_normal(shape)).astype(dtype)
        if is_float(dtype):
            values = self.random.uniform(low, high, shape)
            if self.coarse:
                values = np.round(values * 4) / 4
            if self.special and dtype.itemsize > 1:
                odd = np.array([np.nan, np.inf, -np.inf, -0.0])[self.random.integers(0, 4, shape)]
                values = np.where(self.random.random(shape) < 0.15, odd, values)
            return np.asarray(values).astype(dtype)
        unsigned = dtype.name.startswith("u")
        bits = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}.get(dtype.name, dtype.itemsize * 8)
        least, most = (0, 2 ** min(bits, 62) - 1) if unsigned else (-2 ** min(bits - 1, 62), 2 ** min(bits - 1, 62) - 1)
        low, high = max(least, int(np.ceil(low * 4 if low < 0 else low))), min(most, int(np.floor(high * 4)))
        return np.asarray(self.random.integers(low, max(low, high) + 1, shape)).astype(dtype)

    def x(self, shape, only=None, **bounds):
        """The next input, of its own type."""
        self.value(self.numbers(self.dtype(len(self.values), only), shape, **bounds), 0.15)
        self.data[-1] = True
        return self.values[-1]

    def value(self, array, constant=0.7):
        """The next input; a constant with this probability."""
        self.values.append(np.asarray(array))
        self.constant.append(self.chance(constant))
        self.data.append(False)
        return self.values[-1]

    def ints(self, values, constant=0.7):
        """The next input, of integers: of i64 where its type is open."""
        dtype = np.dtype(np.int64)
        try:
            dtype = self.dtype(len(self.values))
        except ValueError:
            pass
        return self.value(np.asarray(values, np.int64).astype(dtype), constant)

    def none(self):
        self.values.append(None)
        self.constant.append(False)
        self.data.append(False)

    def attr(self, name, value, p=0.7):
        """An attribute with this probability, where the schema has it; what the node computes with then."""
        if name in self.schema.attributes and (self.chance(p) or self.schema.attributes[name].required):
            self.attrs[name] = value
            return value
        default = self.schema.attributes[name].default_value if name in self.schema.attributes else None
        return helper.get_attribute_value(default) if default is not None and default.name else None

    def axis(self, rank, p=0.7, name="axis"):
        return self.attr(name, self.integer(-rank, rank - 1) if self.opset >= 11 and rank else self.integer(0, max(0, rank - 1)), p)

    def has(self, name):
        return name in self.schema.attributes

    def takes(self, count):
        return self.schema.max_input > count


RECIPES = {}


def recipe(*names):
    def register(function):
        for name in names:
            RECIPES[name] = function
        return function
    return register


# --- elementwise ---------------------------------------------------------------------------------------------------------


@recipe("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor",
        "HardSwish", "Identity", "IsNaN", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign",
        "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "Size", "GlobalAveragePool", "GlobalMaxPool", "NonZero",
        "Det", "Shape")
def unary(d):
    name = d.schema.name
    if name.startswith("Global"):
        d.x(d.shape(low=1, least=3, most=5))
    elif name == "Det":
        n = d.integer(1, 4)
        d.x(d.shape(most=2) + [n, n])
    elif name == "Acosh":
        d.x(d.shape(), low=1.0, high=5.0)
    elif name in ("Log", "Sqrt"):
        d.x(d.shape(), low=0.1, high=5.0)
    elif name in ("Acos", "Asin", "Atanh"):
        d.x(d.shape(), low=-0.9, high=0.9)
    else:
        d.x(d.shape())
        if name == "Shape" and d.opset >= 15:
            d.attr("start", d.integer(-5, 5), 0.5)
            d.attr("end", d.integer(-5, 5), 0.5)


@recipe("Celu", "Elu", "HardSigmoid", "LeakyRelu", "Selu", "Shrink", "ThresholdedRelu", "Gelu", "IsInf", "GlobalLpPool")
def unary_with_attributes(d):
    d.x(d.shape(low=1, least=3, most=5) if d.schema.name == "GlobalLpPool" else d.shape())
    for name in ("alpha", "beta", "gamma", "lambd", "bias"):
        d.attr(name, float(np.float32(d.random.uniform(0.1, 2))))
    d.attr("approximate", d.one("none", "tanh"))
    d.attr("detect_negative", d.integer(0, 1))
    d.attr("detect_positive", d.integer(0, 1))
    d.attr("p", d.integer(1, 3))


@recipe("Add", "Sub", "Mul", "Div", "Pow", "Mod", "And", "Or", "Xor", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal",
        "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "PRelu")
def binary(d):
    name, shape = d.schema.name, d.shape()
    first, second = (shape, d.broadcast(shape)) if d.chance() or name == "PRelu" else (d.broadcast(shape), shape)
    if name == "Pow":
        d.x(first, low=0.25, high=3.0)
        d.x(second, low=0.0, high=0.75 if not is_float(d.dtype(1)) else 2.0)
        return
    a = d.x(first)
    dtype = d.dtype(1)
    if name in ("Div", "Mod"):
        float_mod = name == "Mod" and is_float(a.dtype)
        if float_mod or name == "Mod" and d.chance(0.4):
            d.attrs["fmod"] = 1
        b = d.numbers(dtype, second)
        b = np.where(b == 0, np.ones_like(b), b).astype(dtype)
        d.value(b, 0.2)
    elif name == "BitShift":
        d.attrs["direction"] = d.one("LEFT", "RIGHT")
        d.x(second, low=0.0, high=1.75)
    else:
        d.x(second)


@recipe("Max", "Min", "Sum", "Mean")
def variadic(d):
    shape = d.shape()
    for _ in range(d.integer(1, 4)):
        d.x(d.broadcast(shape) if d.opset >= 8 else shape)


@recipe("Clip")
def clip(d):
    x = d.x(d.shape())
    low, high = sorted((d.integer(-3, 3), d.integer(-3, 3)))
    if d.has("min"):
        d.attr("min", float(low))
        d.attr("max", float(high))
        return
    if x.dtype.name.startswith("u"):
        low, high = abs(low), abs(low) + abs(high)
    for bound in (low, high):
        d.value(np.array(bound, x.dtype)) if d.chance(0.7) else d.none()


@recipe("Where")
def where(d):
    shape = d.shape()
    d.value(d.random.random(d.broadcast(shape)) < 0.5, 0.2)
    d.x(d.broadcast(shape))
    d.x(shape)


@recipe("Cast", "CastLike")
def cast(d):
    name = d.schema.name
    source = d.dtype(0)
    target = d.type_named("T2")
    # Outside of the target's range the result is not defined.
    if name == "Cast":
        d.attrs["to"] = int(helper.np_dtype_to_tensor_dtype(target))
    unsigned = target.name.startswith("u") or target.kind == "b"
    d.special &= is_float(target)
    high = 1.5 if target.name.endswith(("4", "2")) and target.itemsize == 1 and not is_float(target) else 4.0
    d.x(d.shape(), low=0.0 if unsigned else -high, high=min(high, 0.4 if target.name.endswith("int2") else high))
    if name == "CastLike":
        d.value(d.numbers(target, d.shape(most=1)), 0.3)
    if target.name.startswith("float8") or target.name.startswith("float4"):
        d.attr("saturate", d.integer(0, 1), 0.3)


# --- reductions ----------------------------------------------------------------------------------------------------------


@recipe("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
        "ReduceSumSquare")
def reduction(d):
    shape = d.shape()
    x = d.x(shape, **({"low": 0.5} if d.schema.name == "ReduceLogSum" else {}))
    rank = len(x.shape)
    count = d.integer(0, rank)
    axes = [int(a) for a in d.random.permutation(rank)[:count]]
    axes = [a - rank if d.opset >= 11 and d.chance(0.3) else a for a in axes]
    d.attr("keepdims", d.integer(0, 1))
    if d.has("axes"):
        if axes:
            d.attr("axes", axes, 0.8)
    else:
        d.attr("noop_with_empty_axes", d.integer(0, 1), 0.3)
        if axes or d.chance(0.3):
            d.value(np.array(axes, np.int64), 0.75)


@recipe("ArgMax", "ArgMin")
def arg_extreme(d):
    shape = d.shape(least=1, low=1)
    d.special = False
    d.x(shape)
    d.axis(len(shape))
    d.attr("keepdims", d.integer(0, 1))
    d.attr("select_last_index", d.integer(0, 1))


@recipe("Softmax", "LogSoftmax", "Hardmax", "LpNormalization")
def along_axis(d):
    shape = d.shape(least=1 if d.opset < 13 else 1)
    d.x(shape)
    d.axis(len(shape), 1.0 if len(shape) == 1 and d.opset < 13 else 0.7)
    d.attr("p", d.integer(1, 2))


@recipe("CumSum")
def cumulative(d):
    shape = d.shape(least=1)
    d.x(shape)
    d.value(np.array(d.integer(-len(shape), len(shape) - 1), d.one(np.int32, np.int64)))
    d.attr("exclusive", d.integer(0, 1))
    d.attr("reverse", d.integer(0, 1))


@recipe("MeanVarianceNormalization")
def mean_variance(d):
    shape = d.shape(4, low=1)
    d.x(shape)
    d.attr("axes", sorted(int(a) for a in d.random.permutation(4)[: d.integer(1, 4)]))


@recipe("TopK")
def top_k(d):
    shape = d.shape(least=1, low=1)
    d.special = False
    d.x(shape)
    axis = d.axis(len(shape))
    k = d.integer(0, shape[axis])
    if d.has("k"):
        d.attrs["k"] = max(1, k)
    else:
        d.value(np.array([k], np.int64))
    d.attr("largest", d.integer(0, 1))
    d.attr("sorted", 1)
    d.outputs = 2


@recipe("Unique")
def unique(d):
    shape = d.shape(least=1, low=1)
    d.special = False
    d.x(shape)
    d.axis(len(shape), 0.5)
    d.attr("sorted", d.integer(0, 1))
    d.outputs = d.integer(1, 4)


# --- shapes --------------------------------------------------------------------------------------------------------------


@recipe("Concat")
def concat(d):
    shape = d.shape(least=1)
    axis = d.integer(-len(shape) if d.opset >= 11 else 0, len(shape) - 1)
    d.attrs["axis"] = axis
    for _ in range(d.integer(1, 4)):
        shape = list(shape)
        shape[axis] = d.size()
        d.x(shape)


@recipe("Reshape")
def reshape(d):
    shape = d.shape()
    d.x(shape)
    total = int(np.prod(shape))
    new = list(shape)
    if d.chance() and total > 0:
        new = [f for f in (2, 3, 4, 5) if d.chance() and total % f == 0][:1]
        new = new + [total // int(np.prod(new))] + [1] * d.integer(0, 1)
    zeros = d.attr("allowzero", d.integer(0, 1), 0.3)
    if total and new and d.chance(0.4):
        new[d.integer(0, len(new) - 1)] = -1
    elif not zeros:
        new = [0 if i < len(shape) and n == shape[i] and d.chance(0.3) else n for i, n in enumerate(new)]
    d.value(np.array(new, np.int64), 0.75)


@recipe("Flatten", "DepthToSpace", "SpaceToDepth", "Trilu", "EyeLike", "Transpose")
def move(d):
    name = d.schema.name
    if name == "Flatten":
        shape = d.shape(least=0 if d.opset >= 13 else 1)
        d.x(shape)
        d.attr("axis", d.integer(-len(shape) if d.opset >= 11 else 0, len(shape)), 0.7 if len(shape) else 1.0)
    elif name == "DepthToSpace":
        b = d.integer(1, 3)
        d.x([d.size(), b * b * d.integer(1, 2), d.size(), d.size()])
        d.attrs["blocksize"] = b
        d.attr("mode", d.one("DCR", "CRD"))
    elif name == "SpaceToDepth":
        b = d.integer(1, 3)
        d.x([d.size(), d.size(), b * d.integer(1, 3), b * d.integer(1, 3)])
        d.attrs["blocksize"] = b
    elif name == "Trilu":
        d.x(d.shape(least=2))
        d.attr("upper", d.integer(0, 1))
        if d.chance():
            d.value(np.array(d.integer(-4, 4), np.int64))
    elif name == "EyeLike":
        d.x(d.shape(2))
        d.attr("k", d.integer(-2, 2))
        if d.chance():
            d.attrs["dtype"] = int(helper.np_dtype_to_tensor_dtype(d.type_named("T2")))
    else:
        shape = d.shape()
        d.x(shape)
        d.attr("perm", [int(i) for i in d.random.permutation(len(shape))], 0.8 if shape else 0)


@recipe("Squeeze", "Unsqueeze")
def squeeze(d):
    rank = d.integer(1, 4)
    ones = sorted(int(i) for i in d.random.permutation(rank)[: d.integer(0 if d.opset >= 13 else 1, rank)])
    shape = [1 if i in ones else d.integer(2, 4) for i in range(rank)]
    squeezes = d.schema.name == "Squeeze"
    d.x(shape if squeezes else [n for i, n in enumerate(shape) if i not in ones])
    axes = [a - rank if d.opset >= 11 and d.chance(0.3) else a for a in ones]
    if d.has("axes"):
        d.attr("axes", axes, 0.8)
    elif not squeezes or d.chance(0.8):
        d.value(np.array(axes, np.int64), 0.75)


@recipe("Expand")
def expand(d):
    shape = d.shape()
    d.x(d.broadcast(shape))
    target = d.broadcast(shape) if d.chance(0.2) else shape
    d.value(np.array(target, np.int64), 0.75)


@recipe("Tile")
def tile(d):
    shape = d.shape(least=1)
    d.x(shape)
    d.value(np.array([d.integer(0 if d.chance(0.1) else 1, 3) for _ in shape], np.int64), 0.75)


@recipe("Slice")
def slice_(d):
    shape = d.shape(least=1)
    d.x(shape)
    rank = len(shape)
    axes = sorted(int(i) for i in d.random.permutation(rank)[: d.integer(1, rank)])
    if d.chance(0.3):
        axes = list(range(len(axes)))
    starts, ends, steps = [], [], []
    for _ in axes:
        step = d.one(1, 1, 2, 3) if d.opset < 10 or d.chance(0.6) else d.one(-1, -2)
        start, end = d.integer(-6, 6), d.integer(-6, 6)
        if d.chance(0.2):
            end = 2**31 - 1 if step > 0 else -2**31
        starts.append(start), ends.append(end), steps.append(step)
    omitted = axes == list(range(len(axes))) and d.chance()
    if d.has("starts"):
        d.attrs["starts"], d.attrs["ends"] = starts, ends
        if not omitted:
            d.attrs["axes"] = axes
        return
    dtype = d.one(np.int32, np.int64)
    d.bound["Tind"] = np.dtype(dtype)
    constant = 1.0 if d.chance(0.75) else 0.0
    axes = [a - rank if d.opset >= 11 and d.chance(0.3) else a for a in axes]
    steps = steps if d.chance(0.7) else None
    d.value(np.array(starts, dtype), constant)
    d.value(np.array(ends, dtype), constant)
    if not omitted:
        d.value(np.array(axes, dtype), constant)
    elif steps:
        d.none()
    if steps:
        d.value(np.array(steps, dtype), constant)


@recipe("Split")
def split(d):
    shape = d.shape(least=1)
    axis = d.integer(-len(shape) if d.opset >= 11 else 0, len(shape) - 1)
    parts = d.integer(1, 4)
    equal = d.chance()
    sizes = [d.size(1)] * parts if equal else [d.size() for _ in range(parts)]
    shape[axis] = sum(sizes)
    d.attr("axis", axis, 1.0 if axis else 0.5)
    omit = equal and d.chance()
    if d.opset >= 18 and omit:
        d.attrs["num_outputs"] = parts
        # The last part is the smaller one.
        if sizes[0] > 1 and d.chance(0.3):
            shape[axis] -= 1
    d.x(shape)
    d.outputs = parts
    if omit:
        return
    if d.has("split"):
        d.attrs["split"] = sizes
    else:
        d.value(np.array(sizes, np.int64), 0.8)


@recipe("Pad")
def pad(d):
    shape = d.shape(least=1)
    rank = len(shape)
    mode = d.attr("mode", d.one("constant", "reflect", "edge") if d.opset < 19 else d.one("constant", "reflect", "edge", "wrap"))
    mode = mode.decode() if isinstance(mode, bytes) else mode
    if mode != "constant":
        shape = [max(1, n) for n in shape]
    count = rank
    axes = None
    if d.opset >= 18 and d.chance(0.4):
        axes = [int(i) for i in d.random.permutation(rank)[: d.integer(1, rank)]]
        count = len(axes)
    pads = []
    for side in range(2):
        for k in range(count):
            n = shape[axes[k] if axes else k]
            most = n - 1 if mode == "reflect" else 3
            low = 0 if not d.chance(0.3) else -((n - 1) // 2 if mode != "constant" else n // 2)
            pads.append(d.integer(low, max(low, min(most, 3))))
    x = d.x(shape)
    if d.has("pads"):
        d.attrs["pads"] = pads
        d.attr("value", d.integer(-8, 8) / 2)
        return
    d.value(np.array(pads, np.int64), 0.75)
    if d.chance() and mode == "constant":
        d.value(d.numbers(x.dtype, []))
    elif axes:
        d.none()
    if axes:
        axes = [a - rank if d.chance(0.3) else a for a in axes]
        d.value(np.array(axes, d.one(np.int32, np.int64)), 1.0)


@recipe("CenterCropPad")
def center_crop_pad(d):
    shape = d.shape(least=1)
    rank = len(shape)
    axes = None
    if d.chance():
        axes = sorted(int(i) for i in d.random.permutation(rank)[: d.integer(1, rank)])
        d.attrs["axes"] = [a - rank if d.chance(0.3) else a for a in axes]
    d.x(shape)
    d.ints([d.integer(0, 7) for _ in (axes or shape)])


@recipe("ConstantOfShape")
def constant_of_shape(d):
    d.value(np.array(d.shape(), np.int64))
    if d.chance(0.7):
        target = d.type_named("T2")
        d.attrs["value"] = numpy_helper.from_array(d.numbers(target, [1]))


@recipe("Constant")
def constant(d):
    kind = d.one("value", "value_float", "value_floats", "value_int", "value_ints") if d.opset >= 12 else "value"
    d.attrs[kind] = {
        "value": lambda: numpy_helper.from_array(np.asarray(d.numbers(d.type_named("T"), d.shape()))),
        "value_float": lambda: 1.5,
        "value_floats": lambda: [0.5, -1.0, 2.0][: d.integer(1, 3)],
        "value_int": lambda: d.integer(-5, 5),
        "value_ints": lambda: [3, -1, 7][: d.integer(1, 3)],
    }[kind]()


@recipe("Range")
def range_(d):
    dtype = d.dtype(0)
    start, count = d.integer(-4, 4), d.integer(0, 6)
    delta = d.one(-2, -1, 1, 2, 3)
    d.value(np.array(start, dtype), 0.6)
    d.value(np.array(start + count * delta, dtype), 0.6)
    d.value(np.array(delta, dtype), 0.6)


@recipe("OneHot")
def one_hot(d):
    depth = d.integer(1, 5)
    shape = d.shape(most=3)
    dtype = d.dtype(0)
    low = 0 if dtype.name.startswith("u") else -depth
    d.value(d.random.integers(low, depth, shape).astype(dtype), 0.1)
    depth_type = d.dtype(1)
    d.value(np.array(depth if d.chance() else [depth], depth_type))
    d.value(d.numbers(d.dtype(2), [2]))
    d.attr("axis", d.integer(-len(shape) - 1, len(shape)))


@recipe("Compress")
def compress(d):
    shape = d.shape(least=1, low=1)
    d.x(shape)
    if d.chance():
        axis = d.integer(-len(shape) if d.opset >= 11 else 0, len(shape) - 1)
        d.attrs["axis"] = axis
        length = shape[axis]
    else:
        length = int(np.prod(shape))
    d.value(d.random.random(d.integer(1, length)) < 0.6, 0.3)


@recipe("ReverseSequence")
def reverse_sequence(d):
    shape = d.shape(least=2, low=1)
    time = d.integer(0, 1)
    d.attr("time_axis", time, 1.0)
    d.attr("batch_axis", 1 - time, 1.0)
    d.x(shape)
    d.value(d.random.integers(1, shape[time] + 1, shape[1 - time]), 0.3)


# --- indices -------------------------------------------------------------------------------------------------------------


@recipe("Gather")
def gather(d):
    shape = d.shape(least=1, low=1)
    d.x(shape)
    axis = d.axis(len(shape))
    n = shape[axis or 0]
    low = -n if d.opset >= 11 else 0
    dtype = d.one(np.int32, np.int64)
    d.value(d.random.integers(low, n, d.shape(most=2)).astype(dtype), 0.4)


@recipe("GatherElements")
def gather_elements(d):
    shape = d.shape(least=1, low=1)
    d.x(shape)
    axis = d.axis(len(shape)) or 0
    indices = [d.integer(1, n) for n in shape]
    indices[axis] = d.size()
    n = shape[axis]
    d.value(d.random.integers(-n, n, indices).astype(d.one(np.int32, np.int64)), 0.4)


@recipe("GatherND", "ScatterND")
def gather_nd(d):
    batch = d.integer(0, 1) if d.has("batch_dims") else 0
    shape = d.shape(least=1 + batch, low=1)
    last = d.integer(1, len(shape) - batch)
    d.x(shape)
    outer = d.shape(least=0, most=2)
    if d.schema.name == "GatherND":
        d.attr("batch_dims", batch, 1.0)
        outer = shape[:batch] + outer
    else:
        outer = outer or [d.size(1)]
    parts = [d.random.integers(-shape[batch + k] if d.opset >= 11 else 0, shape[batch + k], outer) for k in range(last)]
    indices = np.stack(parts, -1).astype(np.int64)
    if d.schema.name == "GatherND":
        d.value(indices, 0.4)
        return
    # Equal indices have no defined order but where a reduction joins them.
    mode = d.attr("reduction", d.one("none", "add", "mul", "max", "min") if d.opset >= 18 else d.one("none", "add", "mul"), 0.5)
    if mode in (None, b"none", "none"):
        seen, count = set(), int(np.prod(outer))
        flat = indices.reshape(count, last)
        for row in flat:
            key = tuple(int(i) % shape[k] for k, i in enumerate(row))
            if key in seen:
                raise Skip
            seen.add(key)
    d.value(indices, 0.4)
    d.x(list(outer) + shape[last:])


@recipe("Scatter", "ScatterElements")
def scatter_elements(d):
    shape = d.shape(least=1, low=1)
    d.x(shape)
    axis = d.axis(len(shape)) or 0
    indices = [d.integer(1, n) for n in shape]
    n = shape[axis]
    mode = None
    if d.has("reduction"):
        mode = d.attr("reduction", d.one("none", "add", "mul", "max", "min") if d.opset >= 18 else d.one("none", "add", "mul"), 0.5)
    if mode in (None, b"none", "none"):
        order = np.argsort(d.random.random(indices[:axis % len(shape)] + [n] + indices[axis % len(shape) + 1:]), axis)
        index = np.take(order, np.arange(indices[axis]), axis)
        if d.opset >= 11:
            index = np.where(d.random.random(index.shape) < 0.3, index - n, index)
    else:
        index = d.random.integers(-n, n, indices)
    d.value(index.astype(d.one(np.int32, np.int64)), 0.4)
    d.x(index.shape)


# --- contractions --------------------------------------------------------------------------------------------------------


@recipe("MatMul", "MatMulInteger")
def matmul(d):
    m, k, n = d.size(), d.size(), d.size()
    batch = d.shape(most=2)
    a = d.broadcast(batch) + [m, k] if d.chance(0.85) else [k]
    b = batch + [k, n] if d.chance(0.85) else [k]
    d.x(a)
    d.x(b)
    if d.schema.name == "MatMulInteger":
        if d.chance(0.6):
            d.value(d.numbers(d.dtype(0), [m] if len(a) == 2 and d.chance(0.3) else []), 0.7)
            if d.chance(0.6):
                d.value(d.numbers(d.dtype(1), [n] if len(b) == 2 and d.chance(0.3) else []), 0.7)


@recipe("Gemm")
def gemm(d):
    m, k, n = d.size(), d.size(), d.size()
    ta, tb = d.attr("transA", d.integer(0, 1)), d.attr("transB", d.integer(0, 1))
    d.x([k, m] if ta else [m, k])
    d.x([n, k] if tb else [k, n])
    d.attr("alpha", d.one(0.5, 1.0, 2.0) if is_float(d.dtype(0)) else 1.0)
    d.attr("beta", d.one(0.5, 0.0, 2.0) if is_float(d.dtype(0)) else 1.0)
    if d.opset < 11 or d.chance(0.7):
        d.x(d.one([m, n], [n], [1, n], [m, 1], [], [1]))


@recipe("Einsum")
def einsum(d):
    equation, ranks = d.one(("ij,jk->ik", "ij jk"), ("ij,ij->i", "ij ij"), ("ii->i", "ii"), ("ij->ji", "ij"), ("ij->", "ij"),
                            ("bij,bjk->bik", "bij bjk"), ("...ij,...jk->...ik", ".ij .jk"), ("i,j", "i j"), ("ij,j", "ij j"),
                            ("abc,cd,be->ade", "abc cd be"), ("...i->...", ".i"), ("ii", "ii"), ("a...,b...->ab...", "a. b."),
                            ("i...j,j...->...i", "i.j j."))
    sizes = {label: d.size(1) for label in "abcdeijk"}
    dots = d.shape(most=2, low=1)
    for term in ranks.split():
        repeated = {c for c in term if term.count(c) > 1}
        shape = []
        for c in term:
            if c == ".":
                shape += d.broadcast(dots)
            else:
                shape.append(1 if c not in repeated and d.chance(0.1) else sizes[c])
        d.x(shape)
    d.attrs["equation"] = equation if d.chance(0.8) else equation.replace(",", " , ").replace("->", " -> ")


def windows(d, spatial, kernel, strides=True, transposed=False):
    """Strides, dilations and padding of a window over these sizes; what the window covers must fit into the input."""
    rank = len(spatial)
    d.attr("kernel_shape", list(kernel), 0.6)
    if strides:
        d.attr("strides", [d.integer(1, 3) for _ in spatial], 0.5)
    dilations = d.attr("dilations", [d.integer(1, 2) for _ in spatial], 0.3) or [1] * rank
    auto = d.attr("auto_pad", d.one("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"), 0.4)
    auto = auto.decode() if isinstance(auto, bytes) else auto
    pads = [0] * (2 * rank)
    if auto in (None, "NOTSET"):
        pads = d.attr("pads", [d.integer(0, max(0, min(2, kernel[i % rank] - 1))) for i in range(2 * rank)], 0.5) or pads
    if transposed:
        return
    for i, n in enumerate(spatial):
        covered = (kernel[i] - 1) * dilations[i] + 1
        if n + pads[i] + pads[rank + i] < covered and auto not in ("SAME_UPPER", "SAME_LOWER"):
            raise Skip


@recipe("Conv", "ConvTranspose", "ConvInteger")
def convolution(d):
    rank = d.one(1, 2, 2, 2, 3)
    spatial = [d.integer(1, 7) for _ in range(rank)]
    kernel = [d.integer(1, 3) for _ in range(rank)]
    group = d.one(1, 1, 2, 3)
    per_in, per_out = d.integer(1, 3), d.integer(1, 3)
    transposed = d.schema.name == "ConvTranspose"
    d.attr("group", group, 1.0 if group > 1 else 0.3)
    windows(d, spatial, kernel, transposed=transposed)
    d.x([d.size(), group * per_in] + spatial)
    w = [group * per_in, per_out] if transposed else [group * per_out, per_in]
    d.x(w + kernel)
    d.constant[-1], d.data[-1] = d.chance(0.7), False
    if d.schema.name == "ConvInteger":
        if d.chance(0.6):
            d.value(d.numbers(d.dtype(0), []), 0.7)
            if d.chance(0.6):
                d.value(d.numbers(d.dtype(1), [group * per_out] if d.chance(0.3) else []), 0.7)
        return
    if d.chance():
        d.x([group * per_out])
    if transposed:
        strides = d.attrs.get("strides", [1] * rank)
        d.attr("output_padding", [d.integer(0, max(0, s - 1)) for s in strides], 0.3)
        if d.chance(0.15) and "pads" not in d.attrs:
            dil = d.attrs.get("dilations", [1] * rank)
            d.attrs.pop("output_padding", None)
            full = [s * (n - 1) + (k - 1) * a + 1 for s, n, k, a in zip(strides, spatial, kernel, dil)]
            d.attrs["output_shape"] = [max(1, f - d.integer(0, 1)) for f in full]


@recipe("DeformConv")
def deform_conv(d):
    spatial, kernel = [d.integer(2, 6) for _ in range(2)], [d.integer(1, 3) for _ in range(2)]
    group, offset_group, per_in, per_out = d.one(1, 1, 2), d.one(1, 1, 2), 2, d.integer(1, 2)
    d.attr("group", group, 1.0)
    d.attr("offset_group", offset_group, 1.0)
    windows(d, spatial, kernel)
    s, a, p = d.attrs.get("strides", [1, 1]), d.attrs.get("dilations", [1, 1]), d.attrs.get("pads", [0] * 4)
    out = [(n + p[i] + p[2 + i] - (kernel[i] - 1) * a[i] - 1) // s[i] + 1 for i, n in enumerate(spatial)]
    batch, elements = d.size(1), kernel[0] * kernel[1]
    d.x([batch, group * per_in] + spatial)
    d.x([group * per_out, per_in] + kernel)
    d.x([batch, offset_group * 2 * elements] + out, low=-1.5, high=1.5)
    bias = d.chance()
    if bias:
        d.x([group * per_out])
    if d.chance():
        if not bias:
            d.none()
        d.x([batch, offset_group * elements] + out, low=0.0, high=1.0)


@recipe("MaxPool", "AveragePool", "LpPool")
def pool(d):
    rank = d.one(1, 2, 2, 2, 3)
    spatial = [d.integer(1, 7) for _ in range(rank)]
    kernel = [d.integer(1, 3) for _ in range(rank)]
    windows(d, spatial, kernel)
    d.attrs["kernel_shape"] = kernel
    d.attr("ceil_mode", d.integer(0, 1), 0.4)
    d.attr("count_include_pad", d.integer(0, 1), 0.4)
    d.attr("p", d.integer(1, 3))
    d.x([d.size(1), d.size(1)] + spatial)
    if d.schema.name == "MaxPool" and d.opset >= 8 and d.chance(0.3):
        d.outputs = 2
        d.special = False
        d.attr("storage_order", d.integer(0, 1), 0.3)


@recipe("MaxUnpool")
def max_unpool(d):
    n, c, kernel = d.size(1), d.size(1), [2, 2]
    spatial = [d.integer(1, 3) for _ in range(2)]
    out = [2 * s for s in spatial]
    d.x([n, c] + spatial)
    d.attrs["kernel_shape"], d.attrs["strides"] = kernel, [2, 2]
    shape = [n, c] + out
    if d.chance(0.4):
        shape = [n, c] + [o + d.integer(0, 1) for o in out]
    area = shape[2] * shape[3]
    count = spatial[0] * spatial[1]
    index = np.stack([d.random.permutation(area)[:count] + i * area for i in range(n * c)]).reshape([n, c] + spatial)
    d.value(index.astype(np.int64), 0.1)
    if shape[2:] != out or d.chance(0.3):
        d.value(np.array(shape, np.int64), 0.8)


@recipe("MaxRoiPool")
def max_roi_pool(d):
    h, w = d.integer(2, 6), d.integer(2, 6)
    n = d.size(1)
    d.x([n, d.size(1), h, w])
    boxes = []
    for _ in range(d.integer(1, 3)):
        x1, y1 = d.integer(0, w - 1), d.integer(0, h - 1)
        boxes.append([d.integer(0, n - 1), x1, y1, d.integer(x1, w - 1), d.integer(y1, h - 1)])
    d.value(np.array(boxes).astype(d.dtype(0)), 0.2)
    d.attrs["pooled_shape"] = [d.integer(1, 3), d.integer(1, 3)]
    d.attr("spatial_scale", d.one(0.5, 1.0), 0.4)


# --- normalization -------------------------------------------------------------------------------------------------------


@recipe("BatchNormalization")
def batch_normalization(d):
    shape = d.shape(least=2, low=1)
    c = shape[1]
    d.special = False
    d.x(shape)
    d.x([c])
    d.x([c])
    d.x([c])
    d.x([c], low=0.25, high=3.0)
    d.attr("epsilon", 0.01, 0.4)
    if d.opset >= 14 and d.chance(0.25) and shape[0] > 0:
        d.attrs["training_mode"] = 1
        d.attr("momentum", 0.75)
        d.outputs = d.one(1, 3)


@recipe("InstanceNormalization", "GroupNormalization")
def instance_normalization(d):
    shape = d.shape(least=3, low=1)
    if d.schema.name == "GroupNormalization":
        groups = d.integer(1, 3)
        shape[1] = groups * d.integer(1, 3)
        d.attrs["num_groups"] = groups
        d.attr("stash_type", 1, 0.3)
        d.x(shape)
        count = shape[1] if d.opset >= 21 else groups
        d.x([count])
        d.x([count])
    else:
        d.x(shape)
        d.x([shape[1]])
        d.x([shape[1]])
    d.attr("epsilon", 0.01, 0.4)


@recipe("LayerNormalization", "RMSNormalization")
def layer_normalization(d):
    shape = d.shape(least=1, low=1)
    axis = d.axis(len(shape))
    normalized = shape[axis:]
    d.x(shape)
    d.x(normalized if d.chance(0.8) else d.broadcast(normalized))
    d.attr("epsilon", 0.01, 0.4)
    d.attr("stash_type", 1, 0.3)
    if d.schema.name == "LayerNormalization":
        if d.chance():
            d.x(normalized)
        d.outputs = d.one(1, 1, 2, 3)


@recipe("LRN")
def lrn(d):
    d.x(d.shape(4, low=1))
    d.attrs["size"] = d.one(1, 3, 5)
    for name in ("alpha", "beta", "bias"):
        d.attr(name, d.one(0.25, 0.5, 1.0))


@recipe("Dropout")
def dropout(d):
    d.x(d.shape())
    if d.has("ratio"):
        d.attr("ratio", 0.25)
    elif d.chance(0.6):
        d.value(np.array(0.25, d.type_named("T1")))
        if d.chance():
            d.value(np.array(False))
    d.outputs = d.one(1, 2) if d.opset >= 10 else 1


# --- quantization --------------------------------------------------------------------------------------------------------


def scale_and_zero(d, shape, axis, scale_index, zero_index, zero_dtype, scale_dtype):
    per_channel = axis is not None
    size = [shape[axis]] if per_channel else []
    d.value(d.numbers(scale_dtype, size, low=0.25, high=1.0) if scale_dtype.itemsize > 1 else np.ones(size, scale_dtype), 0.9)
    if d.chance(0.7) or zero_dtype.name != "uint8" and d.schema.name == "QuantizeLinear" and "output_dtype" not in d.attrs:
        zero = d.numbers(zero_dtype, size, low=0.0 if zero_dtype.name.startswith("u") else -2.0, high=2.0)
        if is_float(zero_dtype) or zero_dtype.name == "int32":
            zero = np.zeros(size, zero_dtype)
        d.value(zero, 0.9)


@recipe("QuantizeLinear", "DequantizeLinear")
def quantize(d):
    shape = d.shape(least=1)
    quantizes = d.schema.name == "QuantizeLinear"
    d.special = False
    d.coarse = False
    axis = None
    if d.has("axis") and d.chance(0.4):
        axis = d.integer(-len(shape), len(shape) - 1)
        d.attrs["axis"] = axis
    x_type = d.dtype(0)
    d.x(shape)
    inputs = d.schema.inputs
    scale_type = d.type_named(inputs[1].type_str)
    zero_type = d.type_named(inputs[2].type_str)
    if d.has("block_size") and axis is not None and d.chance(0.4):
        axis %= len(shape)
        block = d.integer(1, 3)
        blocks = list(shape)
        blocks[axis] = -(-shape[axis] // block)
        d.attrs["block_size"] = block
        d.value(d.numbers(scale_type, blocks, low=0.25, high=1.0), 0.9)
        zero = d.numbers(zero_type, blocks, low=0.0, high=1.0)
        d.value(np.zeros(blocks, zero_type) if is_float(zero_type) or zero_type.name == "int32" else zero, 0.9)
        return
    scale_and_zero(d, shape, axis, 1, 2, zero_type, scale_type)


@recipe("DynamicQuantizeLinear")
def dynamic_quantize(d):
    d.special = False
    d.x(d.shape(low=1))
    d.outputs = 3


@recipe("QLinearMatMul")
def qlinear_matmul(d):
    m, k, n = d.size(1), d.size(1), d.size(1)
    batch = d.shape(most=1)
    def quantized(i, shape, channel):
        t = d.dtype(i)
        d.x(shape)
        size = [channel] if channel and d.chance(0.3) else []
        d.value(d.numbers(d.dtype(i + 1), size, low=0.125, high=0.5), 0.95)
        d.value(d.numbers(d.dtype(i + 2), size, low=-1.0 if t.name == "int8" else 0.0, high=1.0), 0.95)
    quantized(0, batch + [m, k], None)
    quantized(3, batch + [k, n], n if not batch else None)
    d.value(d.numbers(d.dtype(6), [], low=0.5, high=1.0), 0.95)
    d.value(d.numbers(d.dtype(7), [], low=0.0, high=1.0), 0.95)


@recipe("QLinearConv")
def qlinear_conv(d):
    rank = d.one(1, 2, 2)
    spatial, kernel = [d.integer(3, 7) for _ in range(rank)], [d.integer(1, 3) for _ in range(rank)]
    group, per_in, per_out = d.one(1, 1, 2), d.integer(1, 3), d.integer(1, 3)
    d.attr("group", group, 1.0)
    windows(d, spatial, kernel)
    scale = np.dtype(np.float32)
    channels = [group * per_out] if d.chance(0.4) else []
    d.x([d.size(1), group * per_in] + spatial)
    d.value(d.numbers(scale, [], low=0.125, high=0.5), 1.0)
    d.value(d.numbers(d.dtype(2), [], low=0.0, high=1.0), 1.0)
    d.x([group * per_out, per_in] + kernel)
    d.constant[-1] = True
    d.value(d.numbers(scale, channels, low=0.125, high=0.5), 1.0)
    zero = d.numbers(d.dtype(5), channels, low=0.0, high=1.0)
    d.value(zero if zero.dtype.name == "uint8" and not channels else np.zeros_like(zero), 1.0)
    d.value(d.numbers(scale, [], low=0.5, high=1.0), 1.0)
    d.value(d.numbers(d.dtype(7), [], low=0.0, high=1.0), 1.0)
    if d.chance():
        d.value(d.random.integers(-50, 50, [group * per_out]).astype(np.int32), 1.0)


# --- recurrent layers, attention -----------------------------------------------------------------------------------------


@recipe("RNN", "GRU", "LSTM")
def recurrent(d):
    name = d.schema.name
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[name]
    steps, batch, width, hidden = d.size(1), d.size(1), d.size(1), d.size(1)
    direction = d.attr("direction", d.one("forward", "reverse", "bidirectional"), 0.6)
    both = 2 if direction in ("bidirectional", b"bidirectional") else 1
    d.attrs["hidden_size"] = hidden
    layout = d.attr("layout", 1, 0.15) or 0
    d.attr("clip", 1.5, 0.2)
    d.attr("linear_before_reset", d.integer(0, 1), 0.5)
    d.attr("input_forget", 1, 0.1)
    per = {"RNN": 1, "GRU": 2, "LSTM": 3}[name]
    if d.chance(0.2):
        d.attrs["activations"] = [d.one("Tanh", "Relu", "Sigmoid") for _ in range(per * both)]
    swap = (lambda a, b: [b, a]) if layout else (lambda a, b: [a, b])
    d.special = False
    d.x(swap(steps, batch) + [width], low=-1.0, high=1.0)
    d.x([both, gates * hidden, width], low=-1.0, high=1.0)
    d.x([both, gates * hidden, hidden], low=-1.0, high=1.0)
    d.constant[1:3] = [d.chance(0.8)] * 2
    optional = [lambda: d.x([both, 2 * gates * hidden], low=-1.0, high=1.0),
                lambda: d.value(d.random.integers(1, steps + 1, batch).astype(np.int32), 0.3),
                lambda: d.x(swap(both, batch) + [hidden], low=-1.0, high=1.0)]
    if name == "LSTM":
        optional += [lambda: d.x(swap(both, batch) + [hidden], low=-1.0, high=1.0),
                     lambda: d.x([both, 3 * hidden], low=-1.0, high=1.0)]
    for make in optional[: d.integer(0, len(optional))]:
        make() if d.chance(0.75) else d.none()
    d.outputs = d.integer(1, 3 if name == "LSTM" else 2)


@recipe("Attention")
def attention(d):
    batch, heads, groups, q, kv, size, v_size = d.size(1), d.integer(1, 2), d.integer(1, 2), d.size(1), d.size(1), d.one(2, 4), d.one(2, 3)
    d.special = False
    all_heads = heads * groups
    flat = d.chance(0.4)
    if flat:
        d.attrs["q_num_heads"], d.attrs["kv_num_heads"] = all_heads, heads
        shapes = [[batch, q, all_heads * size], [batch, kv, heads * size], [batch, kv, heads * v_size]]
    else:
        shapes = [[batch, all_heads, q, size], [batch, heads, kv, size], [batch, heads, kv, v_size]]
    for shape in shapes:
        d.x(shape, only=lambda t: is_float(t) and (t.itemsize > 2 or t == d.bound.get("T1", t)), low=-1.0, high=1.0)
    d.attr("is_causal", d.integer(0, 1), 0.4)
    d.attr("scale", 0.5, 0.3)
    d.attr("softcap", 2.0, 0.2)
    past = d.chance(0.25)
    total = kv + (2 if past else 0)
    if d.chance(0.4):
        shape = d.one([q, total], [batch, 1, q, total], [1, all_heads, q, total])
        mask_type = d.type_named("U", only=lambda t: t.kind == "b" or t == d.dtype(0))
        mask = d.random.random(shape) < 0.8 if mask_type.kind == "b" else d.numbers(mask_type, shape)
        if mask_type.kind == "b":
            mask[..., 0] = True
        d.value(mask, 0.2)
    elif past:
        d.none()
    if past:
        d.x([batch, heads, 2, size])
        d.x([batch, heads, 2, v_size])
        d.outputs = 3


@recipe("RotaryEmbedding")
def rotary(d):
    batch, heads, steps, size, most = d.size(1), d.integer(1, 2), d.size(1), d.one(2, 4, 8), 8
    rotated = d.attr("rotary_embedding_dim", d.one(0, size // 2 * 2), 0.3) or size
    d.attr("interleaved", d.integer(0, 1))
    d.special = False
    if d.chance(0.4):
        d.attrs["num_heads"] = heads
        d.x([batch, steps, heads * size])
    else:
        d.x([batch, heads, steps, size])
    if d.chance(0.6):
        d.x([most, rotated // 2], low=-1.0, high=1.0)
        d.x([most, rotated // 2], low=-1.0, high=1.0)
        d.value(d.random.integers(0, most, [batch, steps]).astype(np.int64), 0.4)
    else:
        d.x([batch, steps, rotated // 2], low=-1.0, high=1.0)
        d.x([batch, steps, rotated // 2], low=-1.0, high=1.0)


# --- images and signals --------------------------------------------------------------------------------------------------


@recipe("Resize")
def resize(d):
    rank = d.one(2, 3, 4, 4)
    shape = [d.size(1) for _ in range(rank)]
    mode = d.attr("mode", d.one("nearest", "linear", "cubic") if d.opset >= 11 else d.one("nearest", "linear"))
    mode = mode.decode() if isinstance(mode, bytes) else mode
    first = 0 if mode == "nearest" and d.chance(0.3) else max(0, rank - 2)
    factors = [1.0] * first + [d.one(0.5, 0.75, 1.0, 1.5, 2.0, 3.0) for _ in range(rank - first)]
    x = d.x(shape)
    if d.opset < 11:
        d.value(np.array(factors, np.float32))
        return
    coordinates = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "tf_crop_and_resize"]
    coordinates += ["tf_half_pixel_for_nn"] if d.opset < 13 else ["half_pixel_symmetric"] if d.opset >= 19 else []
    transform = d.attr("coordinate_transformation_mode", d.one(*coordinates))
    d.attr("nearest_mode", d.one("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"), 0.5)
    d.attr("cubic_coeff_a", d.one(-0.5, -0.75), 0.3)
    d.attr("exclude_outside", d.integer(0, 1) if mode == "cubic" else 0, 0.3)
    d.attr("extrapolation_value", 1.5, 0.3)
    axes = list(range(first, rank)) if d.opset >= 18 and d.chance(0.3) else None
    if d.opset >= 18 and mode != "nearest":
        d.attr("antialias", d.integer(0, 1), 0.3)
    if axes:
        d.attrs["axes"] = axes
    pick = axes or list(range(rank))
    if transform == "tf_crop_and_resize":
        starts, ends = np.zeros(rank), np.ones(rank)
        for i in range(first, rank):
            starts[i], ends[i] = d.random.uniform(-0.2, 0.4), d.random.uniform(0.6, 1.2)
        roi = np.concatenate([starts[pick], ends[pick]])
        roi_type = d.one(np.float32, np.float64) if d.opset >= 13 else np.float32
        d.value(roi.astype(d.type_named("T2") if "T2" in {i.type_str for i in d.schema.inputs} else roi_type), 0.9)
    elif d.opset >= 13:
        d.none()
    else:
        d.value(np.zeros(0, np.float32), 1.0)
    if d.chance(0.6):
        d.value(np.array([factors[i] for i in pick], np.float32), 0.85)
    else:
        if d.opset >= 13:
            d.none()
        else:
            d.value(np.zeros(0, np.float32), 1.0)
        sizes = [max(1, int(shape[i] * factors[i])) for i in pick]
        if d.opset >= 18 and d.chance(0.3) and len(pick) == rank - first:
            d.attr("keep_aspect_ratio_policy", d.one("stretch", "not_larger", "not_smaller"))
        d.value(np.array(sizes, np.int64), 0.85)


@recipe("Upsample")
def upsample(d):
    rank = d.one(2, 3, 4)
    shape = [d.size(1) for _ in range(rank)]
    mode = d.attr("mode", d.one("nearest", "linear"))
    first = 0 if mode in ("nearest", b"nearest") else max(0, rank - 2)
    scales = [1.0] * first + [d.one(1.0, 1.5, 2.0, 3.0) for _ in range(rank - first)]
    d.x(shape)
    if d.has("scales"):
        d.attrs["scales"] = scales
    else:
        d.value(np.array(scales, np.float32), 0.9)


@recipe("GridSample")
def grid_sample(d):
    rank = 2 if d.opset < 20 or d.chance(0.7) else 3
    n, c = d.size(1), d.size(1)
    d.special = False
    modes = ("bilinear", "nearest", "bicubic") if d.opset < 20 else ("linear", "nearest", "cubic")
    mode = d.attr("mode", d.one(*(modes if rank == 2 else modes[:2])))
    d.attr("padding_mode", d.one("zeros", "border", "reflection"))
    d.attr("align_corners", d.integer(0, 1))
    d.coarse = False
    d.x([n, c] + [d.integer(1, 5) for _ in range(rank)])
    d.x([n] + [d.size(1) for _ in range(rank)] + [rank], low=-1.3, high=1.3)


@recipe("AffineGrid")
def affine_grid(d):
    rank, n = d.one(2, 3), d.size(1)
    d.x([n, rank, rank + 1], low=-1.0, high=1.0)
    d.value(np.array([n, d.size(1)] + [d.integer(2, 4) for _ in range(rank)], np.int64), 0.8)
    d.attr("align_corners", d.integer(0, 1))


@recipe("RoiAlign")
def roi_align(d):
    n, h, w, boxes = d.size(1), d.integer(2, 6), d.integer(2, 6), d.integer(1, 3)
    d.special = False
    d.x([n, d.size(1), h, w])
    corners = d.random.uniform(0, 1, (boxes, 2)) * [w - 1, h - 1]
    d.value(np.concatenate([corners, corners + d.random.uniform(0.5, 2, (boxes, 2))], 1).astype(d.dtype(0)), 0.2)
    d.value(d.random.integers(0, n, boxes).astype(np.int64), 0.2)
    d.attr("output_height", d.integer(1, 3))
    d.attr("output_width", d.integer(1, 3))
    d.attr("sampling_ratio", d.integer(0, 2))
    d.attr("spatial_scale", d.one(0.5, 1.0))
    d.attr("mode", d.one("avg", "max"))
    d.attr("coordinate_transformation_mode", d.one("half_pixel", "output_half_pixel"))


@recipe("Col2Im")
def col2im(d):
    image, block = [d.integer(2, 5), d.integer(2, 5)], [d.integer(1, 2), d.integer(1, 2)]
    dilations = d.attr("dilations", [d.integer(1, 2) for _ in range(2)], 0.3) or [1, 1]
    strides = d.attr("strides", [d.integer(1, 2) for _ in range(2)], 0.3) or [1, 1]
    pads = d.attr("pads", [d.integer(0, 1) for _ in range(4)], 0.3) or [0] * 4
    count = [(image[i] + pads[i] + pads[2 + i] - (block[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(2)]
    if min(count) < 1:
        raise Skip
    d.x([d.size(1), d.integer(1, 2) * block[0] * block[1], count[0] * count[1]])
    d.value(np.array(image, np.int64), 0.9)
    d.value(np.array(block, np.int64), 0.9)


@recipe("NonMaxSuppression")
def non_max_suppression(d):
    n, boxes, classes = d.size(1), d.size(1), d.size(1)
    corners = d.random.uniform(0, 1, (n, boxes, 2))
    d.value(np.concatenate([corners, corners + d.random.uniform(0.2, 1, (n, boxes, 2))], 2).astype(np.float32), 0.1)
    d.value(d.random.uniform(0, 1, (n, classes, boxes)).astype(np.float32), 0.1)
    d.attr("center_point_box", d.integer(0, 1), 0.4)
    for make in (lambda: np.array(d.one([d.integer(0, 3)], d.integer(1, 3)), np.int64),
                 lambda: np.array(d.one([0.5], 0.3), np.float32), lambda: np.array([0.4], np.float32))[: d.integer(1, 3)]:
        d.value(make(), 0.8)


@recipe("HannWindow", "HammingWindow", "BlackmanWindow")
def window(d):
    d.value(np.array(d.integer(2, 9), d.dtype(0)), 0.7)
    d.attr("periodic", d.integer(0, 1))
    target = d.type_named("T2")
    d.attr("output_datatype", int(helper.np_dtype_to_tensor_dtype(target)), 0.7)


@recipe("MelWeightMatrix")
def mel_weights(d):
    d.bound["T1"] = d.one(np.dtype(np.int32), np.dtype(np.int64))
    t = d.type_named("T2", only=is_float)
    d.value(np.array(d.integer(2, 6), d.bound["T1"]), 0.9)
    d.value(np.array(16, d.bound["T1"]), 0.9)
    d.value(np.array(8000, d.bound["T1"]), 0.9)
    d.value(np.array(0, t), 0.9)
    d.value(np.array(4000, t), 0.9)
    d.attr("output_datatype", int(helper.np_dtype_to_tensor_dtype(d.type_named("T3"))), 0.5)


@recipe("DFT")
def dft(d):
    inverse = d.attr("inverse", d.integer(0, 1), 0.3)
    onesided = d.attr("onesided", d.integer(0, 1), 0.3) if not inverse else 0
    shape = d.shape(least=2, most=3, low=1) + [1 if onesided or d.chance() else 2]
    d.special = False
    axis = d.integer(0, len(shape) - 2) if d.opset < 20 else d.one(d.integer(0, len(shape) - 2), d.integer(-len(shape), -2))
    if d.has("axis"):
        axis = d.attr("axis", axis)
    d.x(shape)
    if d.chance(0.3):
        d.value(np.array(d.integer(1, 5), d.one(np.int32, np.int64)), 0.9)
    elif d.opset >= 20:
        d.none()
    if d.opset >= 20:
        d.value(np.array(axis, np.int64), 0.9)


@recipe("STFT")
def stft(d):
    length, frame, step = d.integer(8, 16), d.one(4, 8), d.integer(1, 4)
    d.special = False
    d.x([d.size(1), length, 1])
    d.ints(step, 0.9)
    d.attr("onesided", d.integer(0, 1))
    kind = d.integer(0, 2)
    if kind:
        d.x([frame], low=0.5, high=1.0)
    else:
        d.none()
    if kind != 1:
        d.ints(frame, 0.9)


@recipe("TfIdfVectorizer")
def tf_idf(d):
    d.value(d.random.integers(1, 6, d.shape(least=1, most=2, low=1)).astype(d.one(np.int32, np.int64)), 0.2)
    d.attrs.update(mode=d.one("TF", "IDF", "TFIDF"), min_gram_length=1, max_gram_length=2, max_skip_count=d.integer(0, 2),
                   ngram_counts=[0, 3], ngram_indexes=[0, 1, 2, 3, 4], pool_int64s=[1, 2, 5, 1, 2, 3, 4])
    d.attr("weights", [0.5, 1.0, 2.0, 0.25, 1.5])


# --- losses --------------------------------------------------------------------------------------------------------------


@recipe("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(d):
    n, c, inner = d.size(1), d.integer(2, 4), d.shape(most=2, low=1)
    d.special = False
    d.x([n, c] + inner)
    labels = d.random.integers(0, c, [n] + inner)
    ignore = d.attr("ignore_index", d.one(0, 1, -1), 0.3)
    if ignore == -1 and labels.size:
        labels.reshape(-1)[0] = -1
    d.value(labels.astype(d.one(np.int32, np.int64)), 0.2)
    if d.chance():
        d.x([c], low=0.25, high=2.0)
    d.attr("reduction", d.one("none", "mean", "sum"))
    if d.schema.name == "SoftmaxCrossEntropyLoss":
        d.outputs = d.integer(1, 2)


# Control flow, sequences and optional values consist of several nodes; ONNX's own node tests have them. Random numbers
# have no expected values, and strings and pictures no tensors.
NOT_GENERATED = {
    "If": "graphs", "Loop": "graphs", "Scan": "graphs", "SequenceMap": "graphs",
    **{name: "sequences" for name in ("ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt",
       "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SplitToSequence")},
    **{name: "random numbers" for name in ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
       "RandomUniformLike")},
    **{name: "strings" for name in ("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit")},
    "ImageDecoder": "files of pictures",
}


def operators():
    names = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= OPSETS[-1]:
            names.setdefault(schema.name, []).append(schema.since_version)
    unknown = set(names) - set(RECIPES) - set(NOT_GENERATED)
    assert not unknown, f"no recipe for {sorted(unknown)}"
    return sorted(set(names) & set(RECIPES))


# --- judges --------------------------------------------------------------------------------------------------------------

NATIVE = {np.dtype(t) for t in (np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
                                np.uint32, np.uint64, np.bool_)}


def declared(array, name, sizes):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), sizes)


def build(d, inferred=None, results=None):
    """The model of the node; its outputs have the types that were inferred and the shapes of the results."""
    names = ["" if v is None else f"x{i}" for i, v in enumerate(d.values)]
    outputs = [f"y{i}" for i in range(d.outputs)]
    node = helper.make_node(d.schema.name, names, outputs, name="node", **d.attrs)
    inputs, constants = [], []
    for name, value, constant in zip(names, d.values, d.constant):
        if value is None:
            continue
        if constant:
            constants.append(numpy_helper.from_array(value, name))
        else:
            sizes = [f"{name}_{i}" if d.open and d.open_axes[name][i] else n for i, n in enumerate(value.shape)]
            inputs.append(declared(value, name, sizes))
    ports = []
    for i, name in enumerate(outputs):
        if results is None:
            ports.append(onnx.ValueInfoProto(name=name))
        else:
            ports.append(helper.make_tensor_value_info(name, inferred[i], None if d.open else results[i].shape))
    graph = helper.make_graph([node], "generated", inputs, ports, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", d.opset)], ir_version=10)


def by_reference(d, model, inferred):
    inputs = {i.name: d.values[int(i.name[1:])] for i in model.graph.input}
    return ReferenceEvaluator(model).run(None, inputs)


def by_runtime(d, model, inferred):
    """ONNX Runtime; types that NumPy does not have enter as constants and leave as floats."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    values = {}
    for port in list(model.graph.input):
        value = d.values[int(port.name[1:])]
        if value.dtype in NATIVE:
            values[port.name] = value
        else:
            model.graph.input.remove(port)
            model.graph.initializer.append(numpy_helper.from_array(value, port.name))
    for i, port in enumerate(model.graph.output):
        port.type.tensor_type.elem_type = inferred[i]
        port.type.tensor_type.ClearField("shape")
        if helper.tensor_dtype_to_np_dtype(inferred[i]) not in NATIVE:
            model.graph.node.append(helper.make_node("Cast", [port.name], ["float_" + port.name], to=TensorProto.FLOAT))
            port.name = "float_" + port.name
            port.type.tensor_type.elem_type = TensorProto.FLOAT
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results = session.run(None, values)
    return [np.asarray(r).astype(helper.tensor_dtype_to_np_dtype(t)) if np.asarray(r).dtype == np.float32 else r
            for r, t in zip(results, inferred)]


def agree(a, b):
    if a.shape != b.shape:
        return False
    if is_float(a.dtype):
        a, b = a.astype(np.float64), b.astype(np.float64)
        finite = np.abs(a[np.isfinite(a)])
        with np.errstate(invalid="ignore"):
            return bool(np.all((a == b) | (np.isnan(a) & np.isnan(b)) |
                               (np.abs(a - b) <= 1e-5 * (np.max(finite) if finite.size else 0) + 1e-4 * np.abs(a))))
    return bool(np.array_equal(a, b))


def in_floats(d):
    """The node with f32 in place of all other floats, which a judge may lack or sum with large errors; else nothing."""
    values = [v if v is None or not is_float(v.dtype) or v.dtype.itemsize == 1 else v.astype(np.float32) for v in d.values]
    if all(v is None or v.dtype == w.dtype for v, w in zip(values, d.values)) or d.schema.name in ("Cast", "CastLike", "BitCast"):
        return None
    other = copy.copy(d)
    other.values = values
    return other


def rounded(results, inferred):
    """Results in f32 as the types of the node itself."""
    out = []
    for result, number in zip(results, inferred):
        dtype = helper.tensor_dtype_to_np_dtype(number)
        out.append(np.asarray(result).astype(dtype) if is_float(dtype) else np.asarray(result))
    return out


def computed(d, model, inferred, compute):
    """The results of a judge. Its sums of floats of 2 bytes are those of f32, rounded."""
    floats = in_floats(d)
    narrow = any(v is not None and is_float(v.dtype) and v.dtype.itemsize == 2 for v in d.values)
    if compute is by_reference and narrow and floats:
        return rounded(compute(floats, build(floats), inferred_types(build(floats))[0]), inferred)
    try:
        return compute(d, model, inferred)
    except Exception:
        if not floats or compute is by_reference:
            raise
        return rounded(compute(floats, build(floats), inferred_types(build(floats))[0]), inferred)


JUDGES = {"ONNX Runtime": by_runtime, "reference": by_reference}


def inferred_types(model):
    """The types and shapes of the outputs by ONNX's inference."""
    checked = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    types = [o.type.tensor_type.elem_type for o in checked.graph.output]
    shapes = [[d.dim_value if d.HasField("dim_value") else None for d in o.type.tensor_type.shape.dim]
              if o.type.tensor_type.HasField("shape") else None for o in checked.graph.output]
    return types, shapes


def judge(d):
    """The model, and the results of the judges that differ from each other; None where no judge computes the model."""
    model = build(d)
    try:
        inferred, shapes = inferred_types(model)
    except Exception:
        return None
    if 0 in inferred:
        return None

    def fits(result, dtype, shape):
        same = shape is None or len(shape) == result.ndim and all(a in (None, b) for a, b in zip(shape, result.shape))
        return result.dtype == helper.tensor_dtype_to_np_dtype(dtype) and same

    found = []
    for name, compute in JUDGES.items():
        if (name, d.schema.name) in NO_JUDGE:
            condition = NO_JUDGE[name, d.schema.name]
            if condition is None or condition(d):
                continue
        try:
            results = [np.asarray(r) for r in computed(d, model, inferred, compute)]
        except Exception:
            continue
        # A judge whose result has another type than ONNX infers is none.
        if len(results) != len(inferred) or not all(map(fits, results, inferred, shapes)):
            continue
        if not any(all(agree(a, b) for a, b in zip(results, other)) for _, other in found):
            found.append((name, results))
    return (inferred, found) if found else None


# --- the command ---------------------------------------------------------------------------------------------------------


def make(folder, seed, index, names, special):
    random = np.random.default_rng([seed, index])
    for attempt in range(40):
        name = names[int(random.integers(len(names)))] if attempt == 0 or attempt % 8 == 0 else name
        opset = int(random.integers(OPSETS[0], OPSETS[-1] + 1))
        try:
            schema = defs.get_schema(name, opset)
        except defs.SchemaError:
            continue
        d = Draw(random, schema, opset, special)
        try:
            if schema.deprecated:
                continue
            RECIPES[name](d)
            # The sizes of data may be left open; those of lists of integers, which decide ranks, are not. An open size is
            # not 1: unknown sizes are taken to be equal where an operator broadcasts.
            d.open_axes = {f"x{i}": [d.data[i] and n > 1 and d.chance(0.6) for n in np.shape(v)]
                           for i, v in enumerate(d.values) if v is not None}
            decided = judge(d)
        except Skip:
            continue
        if not decided:
            continue
        inferred, found = decided
        target = folder / f"{index:05}_{name}_{opset}"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        model = build(d, inferred, found[0][1])
        (target / "model.onnx").write_bytes(model.SerializeToString())
        for number, (who, results) in enumerate(found):
            data = target / f"test_data_set_{number}"
            data.mkdir()
            (data / "judge").write_text(who)
            for i, port in enumerate(model.graph.input):
                proto = numpy_helper.from_array(d.values[int(port.name[1:])], port.name)
                (data / f"input_{i}.pb").write_bytes(proto.SerializeToString())
            for i, result in enumerate(results):
                (data / f"output_{i}.pb").write_bytes(numpy_helper.from_array(result, f"y{i}").SerializeToString())
        return True
    return False


def child(folder, seed, indices, names, special, progress):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for index in indices:
        progress.value = index
        make(folder, seed, index, names, special)


def main():
    parser = argparse.ArgumentParser(description=inspect.cleandoc(__doc__), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", help="models of this operator alone")
    parser.add_argument("--special", type=float, default=0.04, help="the share of models with NaN and infinity")
    options = parser.parse_args()
    names = operators()
    if options.only:
        names = [n for n in names if n == options.only] or sys.exit(f"error: no models of {options.only} are generated")
    options.folder.mkdir(parents=True, exist_ok=True)
    indices = list(range(options.first, options.first + options.models))
    while indices:
        progress = multiprocessing.Value("i", -1)
        process = multiprocessing.Process(target=child, args=(options.folder, options.seed, indices, names, options.special, progress))
        process.start()
        process.join()
        done = progress.value
        if process.exitcode == 0:
            break
        print(f"a judge ended the process at model {done}, which is left out", file=sys.stderr)
        indices = [i for i in indices if i > done]
    print(f"{sum(1 for _ in options.folder.iterdir())} models in {options.folder}")


if __name__ == "__main__":
    main()
