"""Measures Tenon beside its peers: see scripts/bench_peers, which calls this in an environment that has them."""
import argparse
import importlib.util
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

# Before any of them starts its threads.
THREADS = int(os.environ.get("BENCH_THREADS", "1"))
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TVM_NUM_THREADS"):
    os.environ[variable] = str(THREADS)

import numpy as np
import onnx

import models

TOLERANCE = 1e-3  # of the largest element: sums of thousands of products in other orders
INT8_TOLERANCE = 0.1  # floats between layers round to other bytes, and layers pass that on


def say(text):
    print(text, file=sys.stderr, flush=True)


class InProcess:
    """A peer that is a Python library: threads of this process."""

    def seconds(self, runs):
        # Threads that wait for work count as CPU time: several are measured by the clock.
        clock = time.process_time if THREADS == 1 else time.perf_counter
        begin = clock()
        for _ in range(runs):
            self.run()
        return (clock() - begin) / runs

    def close(self):
        pass


class Tenon:
    name = "Tenon"

    def __init__(self, path, inputs, tenon):
        results = path.with_suffix(".tenon.npz")
        self.process = subprocess.Popen(
            [tenon, "bench", "model", path, "--inputs", path.with_suffix(".npz"), "--results", results,
             "--threads", str(THREADS), "--serve"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ready = self.process.stdout.readline().split()
        if ready[:1] != ["ready"]:
            raise RuntimeError("tenon bench model failed; what it said is above")
        self.compile = float(ready[1])
        with np.load(results) as file:
            self.results = {name: file[name] for name in file}

    def seconds(self, runs):
        self.process.stdin.write(f"{runs}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("tenon bench model ended; what it said is above")
        cpu, wall = answer.split()
        return float(cpu if THREADS == 1 else wall)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class OnnxRuntime(InProcess):
    name = "ONNX Runtime"

    def __init__(self, path, inputs, tenon):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
        options.add_session_config_entry("session.force_spinning_stop", "1")  # after a run: another engine's turn
        sequence = path.with_suffix(".sequence.onnx")  # of a loop of cells: the whole sequence as one operator
        session = onnxruntime.InferenceSession(sequence if sequence.exists() else path, options,
                                               providers=["CPUExecutionProvider"])
        self.version = onnxruntime.__version__
        names = [output.name for output in session.get_outputs()]
        self.run = lambda: session.run(names, inputs)
        self.results = dict(zip(names, self.run()))


class Torch(InProcess):
    name = "PyTorch"

    def __init__(self, path, inputs, tenon):
        import torch
        import torch_graph
        torch.set_num_threads(THREADS)
        self.version = torch.__version__
        model = torch_graph.Graph(onnx.load(path))
        given = {name: torch.from_numpy(value) for name, value in inputs.items()}

        def run():
            with torch.inference_mode():
                return model(given)
        self.run = run
        self.results = {name: value.numpy() for name, value in run().items()}


class Tvm(InProcess):
    name = "TVM untuned"

    def __init__(self, path, inputs, tenon):
        import tvm
        from tvm import relax
        from tvm.relax.frontend.onnx import from_onnx
        begin = time.process_time()
        model = onnx.load(path)
        module = relax.transform.DecomposeOpsForInference()(from_onnx(model))
        target = tvm.target.Target({"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu()})
        machine = relax.VirtualMachine(relax.build(module, target), tvm.cpu())
        self.version, self.compile = tvm.__version__, time.process_time() - begin
        given = [tvm.runtime.tensor(inputs[value.name]) for value in model.graph.input]

        def run():
            return machine["main"](*given)
        self.run = run
        found = run()
        found = [found] if hasattr(found, "numpy") else list(found)
        self.results = {value.name: x.numpy() for value, x in zip(model.graph.output, found)}


ENGINES = {"onnxruntime": OnnxRuntime, "torch": Torch, "tvm": Tvm}


def difference(found, expected):
    """The largest difference by the largest element, over all results."""
    worst = 0
    for name, value in expected.items():
        if name not in found or found[name].shape != value.shape:
            raise RuntimeError(f"{value.shape} is expected of {name}, found are "
                               f"{', '.join(f'{key} {other.shape}' for key, other in found.items())}")
        worst = max(worst, float(np.max(np.abs(found[name] - value)) / max(np.max(np.abs(value)), 1e-30)))
    return worst


def measure(name, folder, tenon, peers, rounds):
    path, tolerance = folder / f"{name}.onnx", INT8_TOLERANCE if name.endswith(models.INT8) else TOLERANCE
    models.write(name, folder)
    with np.load(path.with_suffix(".npz")) as file:
        inputs = {key: file[key] for key in file}
    say(f"   {name}: compile and check")
    row = {"model": name, "engines": {}}
    ours = Tenon(path, inputs, tenon)
    engines = [ours]
    for key in peers:
        try:
            engines.append(ENGINES[key](path, inputs, tenon))
        except Exception as failed:  # whatever a peer says, the others are measured
            text = (str(failed).strip() or repr(failed)).splitlines()[-1]
            say(f"   {name}: {ENGINES[key].name} does not run it: {text[:200]}")
            row["engines"][ENGINES[key].name] = {"failed": text}
    for engine in engines:
        figures = row["engines"][engine.name] = {}
        if engine is not ours:
            figures["difference"] = difference(ours.results, engine.results)
            figures["version"] = engine.version
            if not figures["difference"] <= tolerance:
                raise RuntimeError(f"{name}: the results of Tenon and {engine.name} differ by "
                                   f"{figures['difference']:g} of the largest element; {tolerance:g} is allowed")
        if hasattr(engine, "compile"):
            figures["compile_seconds"] = engine.compile
    say(f"   {name}: {rounds} rounds")
    runs = {engine: max(1, min(200, int(0.1 / max(engine.seconds(1), 1e-9)))) for engine in engines}
    times = {engine: [] for engine in engines}
    for _ in range(rounds):
        for engine in engines:
            if THREADS > 1:
                time.sleep(0.2)  # until the threads of the engine before have stopped waiting for work
                engine.seconds(runs[engine])  # until those of this one are on processors of their own
            times[engine].append(engine.seconds(runs[engine]))
    base = statistics.median(times[ours])
    for engine in engines:
        figures = row["engines"][engine.name]
        figures["seconds"] = statistics.median(times[engine])
        figures["ratio"] = figures["seconds"] / base
        engine.close()
    return row


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def table(rows, peers):
    names = [ENGINES[key].name for key in peers]
    lines = ["| model | compile s | Tenon ms | " + "".join(f"{name} ms | ratio | " for name in names).rstrip(),
             "| --- | --- | --- |" + " --- | --- |" * len(names)]
    ratios = {name: [] for name in names}
    for row in rows:
        ours = row["engines"]["Tenon"]
        cells = [row["model"], f"{ours['compile_seconds']:.1f}", f"{ours['seconds'] * 1e3:.2f}"]
        for name in names:
            figures = row["engines"][name]
            if "failed" in figures:
                cells += ["fails", ""]
            else:
                ratios[name].append(figures["ratio"])
                cells += [f"{figures['seconds'] * 1e3:.2f}", f"{figures['ratio']:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    means = "".join(f"  | {geomean(ratios[name]):.2f} | " if ratios[name] else "  | | " for name in names)
    if names:
        lines.append("| geometric mean | | | " + means.strip())
    return "\n".join(line.rstrip() for line in lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tenon", required=True)
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    parser.add_argument("--json", required=True, type=pathlib.Path)
    parser.add_argument("--peers", required=True)
    parser.add_argument("--models", required=True)
    parser.add_argument("--rounds", type=int, required=True)
    arguments = parser.parse_args()
    peers = [peer for peer in arguments.peers.split(",") if peer]
    quantizes = importlib.util.find_spec("onnxruntime") is not None
    chosen = (arguments.models.split(",") if arguments.models else
              [name for name in models.MODELS if quantizes or not name.endswith(models.INT8)])
    if not quantizes and any(name.endswith(models.INT8) for name in chosen):
        say("error: models in int8 are quantized by onnxruntime, which is not there\n  help: omit --no-install, or them")
        return 2
    for name, known, what in ([(peer, ENGINES, "peer") for peer in peers] +
                              [(model, models.MODELS, "model") for model in chosen]):
        if name not in known:
            say(f"error: no {what} is called {name}\n  help: there are {', '.join(known)}")
            return 2
    arguments.folder.mkdir(parents=True, exist_ok=True)
    try:
        rows = [measure(name, arguments.folder, arguments.tenon, peers, arguments.rounds) for name in chosen]
    except RuntimeError as failed:
        say(f"error: {failed}")
        return 1
    arguments.json.write_text(json.dumps({"threads": THREADS, "rounds": arguments.rounds, "models": rows}, indent=1))
    print(table(rows, peers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
