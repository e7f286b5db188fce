"""Many instances of dynamic models: Tenon's batches beside DyNet's automatic batching and batches that are written by hand
in PyTorch, interleaved: CPU time of one thread of an instance, medians.

All compute with the same weights on the same instances, and their results are compared before anything is timed.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

import models

WORDS = 5000
INSTANCES = 64


def random_tree(random, leaves):
    """A word, or a pair of trees."""
    if leaves == 1:
        return int(random.integers(WORDS))
    left = int(random.integers(1, leaves))
    return random_tree(random, left), random_tree(random, leaves - left)


def tree_text(tree):
    return f"Leaf([{tree}])" if isinstance(tree, int) else f"Node({tree_text(tree[0])}, {tree_text(tree[1])})"


class TreeLstm:
    """The model of tests/examples/tree_lstm.tn, of another size."""
    entry = "classify"

    def __init__(self, hidden, folder):
        random = np.random.default_rng(1)
        normal = lambda *shape, scale=hidden ** -0.5: random.standard_normal(shape, np.float32) * np.float32(scale)
        self.weights = {"embedding": normal(WORDS, hidden, scale=0.1), "leaf": normal(hidden, 3 * hidden),
                        "left": normal(hidden, 5 * hidden), "right": normal(hidden, 5 * hidden),
                        "bias": normal(5 * hidden, scale=0.1), "classes": normal(hidden, 5)}
        np.savez(folder / "tree_lstm.npz", **self.weights)
        sizes = {"20": WORDS, "8": hidden, "24": 3 * hidden, "40": 5 * hidden}
        text = pathlib.Path("tests/examples/tree_lstm.tn").read_text()
        replace = lambda found: re.sub(r"\b(20|8|24|40)\b", lambda number: str(sizes[number[0]]), found[0])
        self.model = folder / "tree_lstm.tn"
        self.model.write_text(re.sub(r"Tensor\[\([^)]*\)|sizes=\[[^]]*\]", replace, text))
        self.instances = [random_tree(random, int(np.clip(round(random.normal(19, 9)), 2, 52)))
                          for _ in range(INSTANCES)]
        self.file = folder / "trees.txt"
        self.file.write_text("\n".join(map(tree_text, self.instances)) + "\n")


class TreeLstmInTorch:
    """The nodes of all trees of a batch by their height: one product a level."""
    name = "PyTorch"

    def __init__(self, model):
        import torch
        torch.set_num_threads(1)
        self.torch, self.model = torch, model
        self.weights = {name: torch.from_numpy(weight) for name, weight in model.weights.items()}
        self.children = torch.cat([self.weights["left"], self.weights["right"]])

    def leaves(self, words):
        torch = self.torch
        i, o, u = (self.weights["embedding"][words] @ self.weights["leaf"]).chunk(3, -1)
        memory = torch.sigmoid(i) * torch.tanh(u)
        return torch.sigmoid(o) * torch.tanh(memory), memory

    def nodes(self, left, left_memory, right, right_memory):
        torch = self.torch
        gates = torch.addmm(self.weights["bias"], torch.cat([left, right], -1), self.children)
        i, of_left, of_right, o, u = gates.chunk(5, -1)
        memory = torch.sigmoid(i) * torch.tanh(u)
        memory = memory + torch.sigmoid(of_left) * left_memory + torch.sigmoid(of_right) * right_memory
        return torch.sigmoid(o) * torch.tanh(memory), memory

    def run(self, trees):
        torch = self.torch
        words, levels = [], []

        def add(tree):
            if isinstance(tree, int):
                words.append(tree)
                return 0, len(words) - 1
            left, right = add(tree[0]), add(tree[1])
            height = max(left[0], right[0]) + 1
            while len(levels) < height:
                levels.append([])
            levels[height - 1].append((left, right))
            return height, len(levels[height - 1]) - 1

        roots = [add(tree) for tree in trees]
        begins = np.cumsum([0, len(words)] + [len(level) for level in levels])
        hidden = self.children.shape[0] // 2
        outputs, memories = torch.empty(begins[-1], hidden), torch.empty(begins[-1], hidden)
        row = lambda node: begins[node[0]] + node[1]
        with torch.inference_mode():
            outputs[:len(words)], memories[:len(words)] = self.leaves(torch.tensor(words))
            for begin, level in zip(begins[1:], levels):
                left = torch.tensor([row(node) for node, _ in level])
                right = torch.tensor([row(node) for _, node in level])
                made = self.nodes(outputs[left], memories[left], outputs[right], memories[right])
                outputs[begin:begin + len(level)], memories[begin:begin + len(level)] = made
            logits = outputs[torch.tensor([row(root) for root in roots])] @ self.weights["classes"]
            return torch.softmax(logits, 1).numpy()


class TreeLstmInDynet:
    name = "DyNet"

    def __init__(self, model):
        import dynet
        self.dynet, self.collection = dynet, dynet.ParameterCollection()
        self.words = self.collection.lookup_parameters_from_numpy(model.weights["embedding"])
        take = lambda weight: self.collection.parameters_from_numpy(np.ascontiguousarray(weight))
        children = np.concatenate([model.weights["left"], model.weights["right"]])
        self.leaf, self.children = take(model.weights["leaf"].T), take(children.T)
        self.bias, self.classes = take(model.weights["bias"]), take(model.weights["classes"].T)
        self.hidden = model.weights["leaf"].shape[0]

    def read(self, tree):
        dy, size = self.dynet, self.hidden
        if isinstance(tree, int):
            gates = self.leaf * self.words[tree]
            part = lambda k: dy.pick_range(gates, k * size, (k + 1) * size)
            memory = dy.cmult(dy.logistic(part(0)), dy.tanh(part(2)))
            return dy.cmult(dy.logistic(part(1)), dy.tanh(memory)), memory
        left, left_memory = self.read(tree[0])
        right, right_memory = self.read(tree[1])
        gates = dy.affine_transform([self.bias, self.children, dy.concatenate([left, right])])
        sigmoids, candidate = dy.logistic(dy.pick_range(gates, 0, 4 * size)), dy.pick_range(gates, 4 * size, 5 * size)
        part = lambda k: dy.pick_range(sigmoids, k * size, (k + 1) * size)
        memory = dy.cmult(part(0), dy.tanh(candidate))
        memory = memory + dy.cmult(part(1), left_memory) + dy.cmult(part(2), right_memory)
        return dy.cmult(part(3), dy.tanh(memory)), memory

    def run(self, trees):
        self.dynet.renew_cg()
        results = [self.dynet.softmax(self.classes * self.read(tree)[0]) for tree in trees]
        self.dynet.forward(results)
        return np.array([result.npvalue() for result in results])


class Tagger:
    """Tags of the words of a sentence, by a bidirectional LSTM as ONNX has it."""
    entry = "main"

    def __init__(self, hidden, folder):
        self.hidden = hidden
        g = models.Graph("tagger", 2)
        words = g.input("words", onnx.TensorProto.INT64, ["N", 1])
        scale = hidden ** -0.5
        self.weights = {"embedding": g.normal(WORDS, 128, scale=0.1), "input": g.normal(2, 4 * hidden, 128, scale=scale),
                        "recurrent": g.normal(2, 4 * hidden, hidden, scale=scale),
                        "first": g.normal(2 * hidden, 32, scale=scale), "second": g.normal(32, 9, scale=0.2)}
        weight = {name: g.weight(value) for name, value in self.weights.items()}
        outputs = g.op("LSTM", g.op("Gather", weight["embedding"], words), weight["input"], weight["recurrent"],
                       hidden_size=hidden, direction="bidirectional")
        rows = g.op("Reshape", g.op("Transpose", outputs, perm=[0, 2, 1, 3]), g.weight(np.array([-1, 2 * hidden])))
        g.op("MatMul", g.op("Tanh", g.op("MatMul", rows, weight["first"])), weight["second"])
        g.output("tags", ["N", 9])
        self.model = folder / "tagger.onnx"
        onnx.save(g.model(), self.model)
        random = np.random.default_rng(3)
        lengths = np.clip(np.round(random.normal(25, 12, INSTANCES)), 3, 80).astype(int)
        self.instances = [random.integers(0, WORDS, length) for length in lengths]
        self.file = folder / "sentences.jsonl"
        self.file.write_text("".join(json.dumps([[int(word)] for word in words]) + "\n" for words in self.instances))


class TaggerInTorch:
    """Packed sequences: no step after the end of a sentence."""
    name = "PyTorch"

    def __init__(self, model):
        import torch
        torch.set_num_threads(1)
        self.torch = torch
        w = {name: torch.from_numpy(weight) for name, weight in model.weights.items()}
        self.embedding, self.first, self.second = w["embedding"], w["first"], w["second"]
        self.lstm = torch.nn.LSTM(128, model.hidden, bidirectional=True)
        order = np.concatenate([np.arange(k * model.hidden, (k + 1) * model.hidden) for k in (0, 2, 3, 1)])
        with torch.no_grad():  # ONNX's gates are input, output, forget, cell; PyTorch's input, forget, cell, output
            for k, suffix in enumerate(["", "_reverse"]):
                getattr(self.lstm, "weight_ih_l0" + suffix).copy_(w["input"][k][order])
                getattr(self.lstm, "weight_hh_l0" + suffix).copy_(w["recurrent"][k][order])
                getattr(self.lstm, "bias_ih_l0" + suffix).zero_()
                getattr(self.lstm, "bias_hh_l0" + suffix).zero_()

    def run(self, sentences):
        rnn = self.torch.nn.utils.rnn
        with self.torch.inference_mode():
            packed = rnn.pack_sequence([self.embedding[self.torch.from_numpy(words)] for words in sentences],
                                       enforce_sorted=False)
            outputs, _ = self.lstm(packed)
            tags = self.torch.tanh(outputs.data @ self.first) @ self.second
            padded, lengths = rnn.pad_packed_sequence(outputs._replace(data=tags), batch_first=True)
            return [row[:length].numpy() for row, length in zip(padded, lengths)]


class TaggerInDynet:
    name = "DyNet"

    def __init__(self, model):
        import dynet
        self.dynet, self.collection = dynet, dynet.ParameterCollection()
        take = lambda weight: self.collection.parameters_from_numpy(np.ascontiguousarray(weight))
        self.words = self.collection.lookup_parameters_from_numpy(model.weights["embedding"])
        self.first, self.second = take(model.weights["first"].T), take(model.weights["second"].T)
        hidden = model.hidden
        # DyNet's gates are input, forget, output, cell, and its builder adds 1 to the forget gate's sum.
        order = np.concatenate([np.arange(k * hidden, (k + 1) * hidden) for k in (0, 2, 1, 3)])
        self.directions = []
        for k in range(2):
            builder = dynet.VanillaLSTMBuilder(1, 128, hidden, self.collection)
            by_input, recurrent, bias = builder.get_parameters()[0]
            by_input.set_value(model.weights["input"][k][order])
            recurrent.set_value(model.weights["recurrent"][k][order])
            shift = np.zeros(4 * hidden)
            shift[hidden:2 * hidden] = -1
            bias.set_value(shift)
            self.directions.append(builder)

    def run(self, sentences):
        dy = self.dynet
        dy.renew_cg()
        results = []
        for words in sentences:
            inputs = [self.words[int(word)] for word in words]
            forward = self.directions[0].initial_state().transduce(inputs)
            backward = self.directions[1].initial_state().transduce(inputs[::-1])[::-1]
            results.append([self.second * dy.tanh(self.first * dy.concatenate(list(pair)))
                            for pair in zip(forward, backward)])
        dy.forward([tags for sentence in results for tags in sentence])
        return [np.array([tags.npvalue() for tags in sentence]) for sentence in results]


# Model, hidden units, instances in a batch.
CASES = {"tree_lstm": [(128, 1), (128, 8), (128, 64), (256, 64)], "tagger": [(128, 64)]}
MODELS = {"tree_lstm": (TreeLstm, {"torch": TreeLstmInTorch, "dynet": TreeLstmInDynet}),
          "tagger": (Tagger, {"torch": TaggerInTorch, "dynet": TaggerInDynet})}


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)}\n{done.stderr}")
    return done.stdout


def tenon_us(program, model, batch):
    """One by one, and in batches: microseconds of an instance."""
    command = [program, "bench", "batching", "--model", str(model.model), "--entry", model.entry, "--instances",
               str(model.file), "--batches", str(batch), "--rounds", "3", "--json"]
    done = json.loads(run(command))
    return done["one_by_one_us"], done["batches"][0]["us"]


def tenon_results(program, model, batch):
    command = [program, "run", str(model.model), "--entry", model.entry, "--instances", str(model.file), "--batch",
               str(batch), "--json"]
    return [np.array(json.loads(line)["data"]) for line in run(command).splitlines()]


def batches(model, batch):
    return [model.instances[i:i + batch] for i in range(0, INSTANCES, batch)]


def seconds(peer, model, batch):
    groups = batches(model, batch)
    begin = time.process_time()
    for group in groups:
        peer.run(group)
    return (time.process_time() - begin) / INSTANCES


def check(name, peer, model, batch, ours):
    theirs = [row for group in batches(model, batch) for row in peer.run(group)]
    for i, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if not np.allclose(mine, np.asarray(other).reshape(-1), rtol=1e-3, atol=1e-4):
            sys.exit(f"error: {name}: instance {i} results in {mine[:5]} by Tenon, "
                     f"in {np.asarray(other).reshape(-1)[:5]} by {peer.name}")


def measure(name, hidden, batch, arguments):
    make, makers = MODELS[name]
    with tempfile.TemporaryDirectory() as folder:
        model = make(hidden, pathlib.Path(folder))
        peers = [makers[peer](model) for peer in arguments.peers.split(",") if peer]
        ours = tenon_results(arguments.tenon, model, batch)
        for peer in peers:
            check(name, peer, model, batch, ours)
        times = {}
        for _ in range(arguments.rounds):
            alone, together = tenon_us(arguments.tenon, model, batch)
            times.setdefault("one by one", []).append(alone)
            times.setdefault("Tenon", []).append(together)
            for peer in peers:
                times.setdefault(peer.name, []).append(1e6 * min(seconds(peer, model, batch) for _ in range(3)))
    row = {"name": name, "hidden": hidden, "batch": batch}
    row["us"] = {who: statistics.median(found) for who, found in times.items()}
    row["ratios"] = {who: row["us"]["Tenon"] / us for who, us in row["us"].items() if who != "Tenon"}
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tenon", required=True)
    parser.add_argument("--models", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", default="", help="of torch and dynet")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    names = arguments.models.split(",") if arguments.models else list(CASES)
    for name in names:
        if name not in CASES:
            sys.exit(f"error: no model is called {name}; there are {', '.join(CASES)}")
    os.environ["OMP_NUM_THREADS"] = "1"
    if "dynet" in arguments.peers:
        import dynet_config
        dynet_config.set(mem=2048, autobatch=1, random_seed=1)
    rows = []
    for name in names:
        for hidden, batch in CASES[name]:
            row = measure(name, hidden, batch, arguments)
            rows.append(row)
            others = ", ".join(f"{ratio:.2f} of {who} ({row['us'][who]:.1f})" for who, ratio in row["ratios"].items())
            print(f"{name} H{hidden} batch {batch}: {row['us']['Tenon']:.1f} us an instance, {others}", flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
