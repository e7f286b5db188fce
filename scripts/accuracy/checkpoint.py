"""Reads the tensors of a checkpoint that PyTorch before version 1.6 wrote, without PyTorch and without running its code."""
import collections
import pickle
import sys

import numpy as np

MAGIC = 0x1950a86a20f9469cfc6c
STORAGES = {"FloatStorage": np.float32, "LongStorage": np.int64}


class Unpickler(pickle.Unpickler):
    """Accepts dictionaries and tensors alone; a tensor is a view of a storage, which stands behind the last pickle."""

    def __init__(self, file):
        super().__init__(file)
        self.views = []  # storage, offset, shape, strides

    def find_class(self, module, name):
        known = {("collections", "OrderedDict"): collections.OrderedDict,
                 ("torch._utils", "_rebuild_tensor_v2"): self.view, **{("torch", kind): kind for kind in STORAGES}}
        if (module, name) not in known:
            raise pickle.UnpicklingError(f"the checkpoint has {module}.{name}, which is no tensor")
        return known[module, name]

    def persistent_load(self, key):
        _, kind, name, _, size, _ = key
        return name, kind, size

    def view(self, storage, offset, shape, strides, *_):
        self.views.append((storage, offset, shape, strides))
        return len(self.views) - 1


def load(path):
    """The tensors by name, in their order."""
    with open(path, "rb") as file:
        if pickle.load(file) != MAGIC:
            sys.exit(f"error: {path} is not a checkpoint of PyTorch before 1.6")
        for _ in range(2):  # the protocol, the machine that wrote it
            pickle.load(file)
        unpickler = Unpickler(file)
        names = unpickler.load()
        kinds = {view[0][0]: view[0][1] for view in unpickler.views}
        storages = {}
        for name in pickle.load(file):
            size = int.from_bytes(file.read(8), "little")
            dtype = np.dtype(STORAGES[kinds[name]])
            storages[name] = np.frombuffer(file.read(size * dtype.itemsize), dtype)
    arrays = {}
    for name, index in names.items():
        storage, offset, shape, strides = unpickler.views[index]
        data = storages[storage[0]]
        arrays[name] = np.lib.stride_tricks.as_strided(data[offset:], shape, [s * data.itemsize for s in strides]).copy()
    return arrays
