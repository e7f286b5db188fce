"""Measures products, ResNet-18 and MiniLM on the GPU of this machine: Tenon beside PyTorch in its eager mode (products by
cuBLAS), in one run.

Usage: gpu.py TENON FOLDER FIGURES.json [CASE...]: writes models and inputs into FOLDER. Each case is measured in two ways:
kernels by the GPU's clock, with all data on the GPU, and the wall time of a call, whose inputs come from the host and whose
results return to it. Ratio: PyTorch's time by Tenon's, above 1 is faster than PyTorch. The results are compared first.
Required: PyTorch with CUDA, onnx.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np
import onnx
import torch
import torch.nn.functional as F

import minilm
import models
import torch_graph

ROUNDS, SIZE, TOKENS = 21, 4096, 64
TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "tf32": torch.float32, "s8": torch.int8}
# Of the largest element: sums of thousands of products in other orders, rounded to the type of the result.
TOLERANCE = {"f16": 2e-3, "bf16": 2e-2, "f32": 1e-4, "tf32": 3e-3, "s8": 0}


class Product:
    """A[m, k] by B[n, k], transposed, as a layer of a network multiplies."""

    def __init__(self, kind):
        self.kind, self.tolerance, self.options = kind, TOLERANCE[kind], []
        self.name = f"product {SIZE}^3 {kind}"
        if kind in ("f16", "bf16", "tf32"):
            self.options = ["--inexact", kind]

    def write(self, folder):
        kind = {"tf32": "f32", "s8": "i8"}.get(self.kind, self.kind)
        result = "i32" if kind == "i8" else kind
        operands = ['cast(%a, dtype="i32")', 'cast(%b, dtype="i32")'] if kind == "i8" else ["%a", "%b"]
        path = folder / f"product_{self.kind}.tn"
        path.write_text(f'#[version = "1"]\ndef @main(%a: Tensor[({SIZE}, {SIZE}), {kind}], %b: Tensor[({SIZE}, {SIZE}), '
                        f'{kind}]) -> Tensor[({SIZE}, {SIZE}), {result}] {{\n  dense({", ".join(operands)})\n}}\n')
        random = np.random.default_rng(1)
        if kind == "i8":
            self.inputs = {name: random.integers(-128, 128, (SIZE, SIZE), dtype=np.int8) for name in "ab"}
        else:
            self.inputs = {name: random.standard_normal((SIZE, SIZE), dtype=np.float32) for name in "ab"}
        return path

    def prepare(self):
        kind = TYPES[self.kind]
        self.given = {name: torch.from_numpy(value).to(kind) for name, value in self.inputs.items()}
        save = {name: value.view(torch.uint16) if kind == torch.bfloat16 else value for name, value in self.given.items()}
        self.inputs = {name: value.numpy() for name, value in save.items()}

    def run(self, values):
        torch.backends.cuda.matmul.allow_tf32 = self.kind == "tf32"
        if self.kind == "s8":
            return [torch._int_mm(values["a"], values["b"].t())]
        return [F.linear(values["a"], values["b"])]


class ResNet:
    def __init__(self, batch, kind):
        self.batch, self.kind, self.tolerance = batch, kind, 10 * TOLERANCE[kind]
        self.options = ["--inexact", "tf32"] if kind == "tf32" else []
        self.name = f"ResNet-18, batch {batch}, {kind}"

    def write(self, folder):
        model = models.resnet18()
        for value in [*model.graph.input, *model.graph.output]:
            value.type.tensor_type.shape.dim[0].dim_value = self.batch
        path = folder / f"resnet18_{self.batch}.onnx"
        onnx.save(model, path)
        self.graph, self.inputs = torch_graph.Graph(model, "cuda"), models.make_inputs(model)
        return path

    def prepare(self):
        self.given = {name: torch.from_numpy(value) for name, value in self.inputs.items()}

    def run(self, values):
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = self.kind == "tf32"
        return list(self.graph(values).values())


class MiniLm:
    """Written from its definition with PyTorch's own functions; attention is scaled_dot_product_attention."""

    def __init__(self, batch, kind):
        self.batch, self.kind, self.tolerance = batch, kind, 10 * TOLERANCE[kind]
        self.options = ["--shapes", f"N={batch},T={TOKENS}"] + (["--inexact", "tf32"] if kind == "tf32" else [])
        self.name = f"MiniLM, batch {batch}, {TOKENS} tokens, {kind}"

    def write(self, folder):
        weights = minilm.random_weights(6)
        path = folder / "minilm.onnx"
        onnx.save(minilm.build(weights), path)
        self.weights = {name: torch.from_numpy(value).cuda() for name, value in weights.items()}
        random = np.random.default_rng(2)
        self.inputs = {"tokens": random.integers(0, minilm.VOCABULARY, (self.batch, TOKENS)),
                       "mask": (np.arange(TOKENS) < random.integers(5, TOKENS + 1, (self.batch, 1))).astype(np.int64)}
        return path

    def prepare(self):
        self.given = {name: torch.from_numpy(value) for name, value in self.inputs.items()}

    def dense(self, x, name):
        return F.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def norm(self, x, name):
        return F.layer_norm(x, (minilm.HIDDEN,), self.weights[f"{name}.LayerNorm.weight"],
                            self.weights[f"{name}.LayerNorm.bias"], 1e-12)

    def run(self, values):
        torch.backends.cuda.matmul.allow_tf32 = self.kind == "tf32"
        tokens, mask = values["tokens"], values["mask"].float()
        bias = ((1 - mask) * -1e4)[:, None, None, :]
        weight = lambda name: self.weights[f"embeddings.{name}_embeddings.weight"]
        x = F.embedding(tokens, weight("word")) + weight("token_type")[0] + weight("position")[:tokens.shape[1]]
        x = self.norm(x, "embeddings")
        for layer in range(minilm.LAYERS):
            name = f"encoder.layer.{layer}"
            heads = lambda y: y.view(*y.shape[:2], minilm.HEADS, -1).transpose(1, 2)
            q, k, v = (heads(self.dense(x, f"{name}.attention.self.{part}")) for part in ("query", "key", "value"))
            joined = F.scaled_dot_product_attention(q, k, v, attn_mask=bias).transpose(1, 2).reshape(x.shape)
            x = self.norm(x + self.dense(joined, f"{name}.attention.output.dense"), f"{name}.attention.output")
            inner = F.gelu(self.dense(x, f"{name}.intermediate.dense"))
            x = self.norm(x + self.dense(inner, f"{name}.output.dense"), f"{name}.output")
        mean = (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
        return [mean / mean.norm(dim=1, keepdim=True)]


def kernel_seconds(run):
    """By the GPU's clock: runs one after another, as many as take 20 ms, so that the GPU does not wait for the first."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def measure(count):
        begin.record()
        for _ in range(count):
            run()
        end.record()
        torch.cuda.synchronize()
        return 1e-3 * begin.elapsed_time(end) / count
    count = max(1, min(100, int(0.02 / measure(3))))
    return statistics.median(measure(count) for _ in range(ROUNDS))


def wall_seconds(run):
    times = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def measure(case, tenon, folder):
    path = case.write(folder)
    case.prepare()
    inputs, results = folder / "inputs.npz", folder / "results.npz"
    np.savez(inputs, **case.inputs)
    given = ["--inputs", inputs] if case.kind != "bf16" else []  # NumPy has no bf16
    begin = time.perf_counter()
    done = subprocess.run([tenon, "bench", "gpu", path, "--alone", "--json", "--rounds", str(ROUNDS), "--results",
                           results, *given, *case.options], capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    if done.returncode != 0:
        return {"case": case.name, "failed": (done.stderr.strip() or done.stdout.strip())[:2000], "seconds": seconds}
    row = {"case": case.name, "tenon": json.loads(done.stdout), "process_seconds": seconds}
    with torch.inference_mode():
        on_gpu = {name: value.cuda() for name, value in case.given.items()}
        expected = [value.float().cpu().numpy() for value in case.run(on_gpu)]
        if given:
            with np.load(results) as file:
                found = [file[name].astype(np.float32) for name in file]
            row["difference"] = max(float(np.max(np.abs(a - b)) / np.max(np.abs(b))) for a, b in zip(found, expected))
            row["equal"] = row["difference"] <= case.tolerance
        row["torch"] = {
            "kernel_seconds": kernel_seconds(lambda: case.run(on_gpu)),
            "gpu_seconds": wall_seconds(lambda: [value.cpu() for value in
                                                 case.run({name: value.cuda() for name, value in case.given.items()})])}
    row["kernel_ratio"] = row["torch"]["kernel_seconds"] / row["tenon"]["kernel_seconds"]
    row["wall_ratio"] = row["torch"]["gpu_seconds"] / row["tenon"]["gpu_seconds"]
    return row


CASES = {"f16": Product("f16"), "s8": Product("s8"), "bf16": Product("bf16"), "tf32": Product("tf32"),
         "f32": Product("f32")}
for KIND in ("f32", "tf32"):
    for BATCH in (1, 64):
        CASES[f"resnet18_{BATCH}_{KIND}"] = ResNet(BATCH, KIND)
        CASES[f"minilm_{BATCH}_{KIND}"] = MiniLm(BATCH, KIND)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    tenon, folder, figures = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    unknown = [name for name in sys.argv[4:] if name not in CASES]
    if unknown:
        sys.exit(f"error: no case is called {unknown[0]}\n  help: there are {', '.join(CASES)}")
    rows, failed = [], False
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}")
    print("| case | kernels ms | PyTorch ms | ratio | call ms | PyTorch ms | ratio | difference |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for name in sys.argv[4:] or CASES:
        row = measure(CASES[name], tenon, folder)
        rows.append(row)
        figures.write_text(json.dumps({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows},
                                      indent=1))
        if "failed" in row:
            print(f"| {row['case']} | fails: {row['failed']} |", flush=True)
            failed = True
            continue
        ms = lambda engine, what: f"{row[engine][what + '_seconds'] * 1e3:.3f}"
        print(f"| {row['case']} | {ms('tenon', 'kernel')} | {ms('torch', 'kernel')} | {row['kernel_ratio']:.2f} | "
              f"{ms('tenon', 'gpu')} | {ms('torch', 'gpu')} | {row['wall_ratio']:.2f} | "
              f"{row.get('difference', float('nan')):.2g}{'' if row.get('equal', True) else ': too large'} |", flush=True)
        failed |= not row.get("equal", True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
