#!/usr/bin/env python3
"""Makes the examples' weights (NAME.npz) and what NumPy computes with them (NAME_data.npz, generate.txt).

Usage: tests/examples/make_examples.py   (in any directory; needs NumPy alone; the same bytes each time)
"""
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).parent
F = np.float32


def weights(rng, **shapes):
    return {name: rng.normal(0, shape[0] ** -0.5, shape).astype(F) for name, shape in shapes.items()}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def char_rnn(rng):
    w = weights(rng, embedding=(28, 8), input=(8, 16), hidden=(16, 16), bias=(16,), output=(16, 28), start=(1, 16))
    text = rng.integers(0, 28, (40, 1))
    state, score = w["start"], F(0)
    for now, then in zip(text[:-1, 0], text[1:, 0]):
        state = np.tanh(w["embedding"][[now]] @ w["input"] + state @ w["hidden"] + w["bias"])
        score += np.log(softmax(state @ w["output"])[0, then])
    return w, {"text": text, "0": np.array([[score]], F), "1": state}


def tree_lstm(rng):
    w = weights(rng, embedding=(20, 8), leaf=(8, 24), left=(8, 40), right=(8, 40), bias=(40,), classes=(8, 5))
    codes = np.array([3, 7, -1, 11, 4, 19, -1, -1, -1, 0, -1])[:, None]

    def join(gates, memories):
        i, *forget, o, c = (gates[:, k:k + 8] for k in range(0, gates.shape[1], 8))
        memory = sigmoid(i) * np.tanh(c) + sum(sigmoid(f) * m for f, m in zip(forget, memories))
        return memory, sigmoid(o) * np.tanh(memory)

    done = []
    for code in codes[:, 0]:
        if code >= 0:
            done.append(join(w["embedding"][[code]] @ w["leaf"], []))
        else:
            right, left = done.pop(), done.pop()
            done.append(join(left[1] @ w["left"] + right[1] @ w["right"] + w["bias"], [left[0], right[0]]))
    return w, {"codes": codes, "0": softmax(done[-1][1] @ w["classes"])}


def list_lstm(rng):
    w = weights(rng, input=(6, 32), hidden=(8, 32), bias=(32,), start=(1, 8))
    x = rng.normal(size=(25, 1, 6)).astype(F)
    memory, output = w["start"], w["start"]
    for row in x:
        gates = row * F(0.5) @ w["input"] + output @ w["hidden"] + w["bias"]
        i, f, o, c = (gates[:, k:k + 8] for k in range(0, 32, 8))
        memory = sigmoid(f) * memory + sigmoid(i) * np.tanh(c)
        output = sigmoid(o) * np.tanh(memory)
    return w, {"x": x, "0": output}


def generate(rng):
    w = weights(rng, embedding=(12, 6), input=(6, 10), hidden=(10, 10), output=(10, 12), start=(1, 10))
    w["sums"] = np.triu(np.ones((12, 12), F))
    seed, state, symbol, symbols = 7, w["start"], 5, []
    while True:
        state = np.tanh(w["embedding"][[symbol]] @ w["input"] + state @ w["hidden"])
        sums = softmax(state @ w["output"]) @ w["sums"]
        seed = (seed * 1103515245 + 12345) % 2**31
        drawn = seed / 2**31
        assert np.abs(sums - drawn).min() > 1e-5, "a draw that rounding could change: take another seed"
        symbol = int((sums < drawn).sum())
        if symbol == 0:
            break
        symbols.append(symbol)
    text = "Nil"
    for symbol in reversed(symbols):
        text = f"Cons(Tensor[(1,), i64] [{symbol}], {text})"
    (HERE / "generate.txt").write_text(text + "\n")
    return w, None


def banded(rng):
    w = weights(rng, input=(4, 8), bias=(8,), output=(8, 3))
    x, band = rng.normal(size=(12, 4)).astype(F), rng.normal(size=(12, 5)).astype(F)
    features = x @ w["input"] + w["bias"]
    features = features + np.sin(features) ** 2
    matrix = sum(np.diag(band[max(0, 2 - k):12 - max(0, k - 2), k], k - 2) for k in range(5))
    rows = np.exp(matrix @ features @ w["output"])
    return w, {"x": x, "band": band, "0": (rows / rows.sum(axis=1, keepdims=True)).astype(F)}


for number, make in enumerate((char_rnn, tree_lstm, list_lstm, generate, banded)):
    stored, data = make(np.random.default_rng(number + 1))
    np.savez(HERE / f"{make.__name__}.npz", **stored)
    if data is not None:
        np.savez(HERE / f"{make.__name__}_data.npz", **data)
