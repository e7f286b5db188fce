"""Measures the accuracy of trained models on a device: see scripts/bench_accuracy, which calls this."""
import argparse
import gzip
import pathlib
import random
import re
import subprocess
import sys
import wave

import numpy as np
import onnxruntime
from PIL import Image, ImageDraw, ImageFont

FONTS = [pathlib.Path("/usr/share/fonts/truetype/dejavu") / f"{name}.ttf"
         for name in ("DejaVuSans", "DejaVuSerif", "DejaVuSans-Bold", "DejaVuSansMono")]
WORDS = """the quick brown fox jumps over lazy dog accelerator compiler tensor memory kernel schedule matrix vector
convolution quantize pattern region device board clock signal register buffer stream packet number twelve seven report
figure table science history mountain river garden kitchen window morning evening music language water energy market
price total invoice account street avenue""".split()
TONES = {"beep", "beeperr", "ascending-2tone", "descending-2tone", "confbridge-join", "confbridge-leave"}


def run_on_device(options, model, session, shapes, data, name, *more):
    """The model's first output of `tenon run` by sample, and the share of the MACs on the accelerator."""
    results = options.folder / f"{name}.npz"
    command = [options.tenon, "run", model, "--device", options.device, "--quiet", *(["--shapes", shapes] if shapes else []),
               "--calibrate", options.folder / f"{data}_calibration.npz", "--data", options.folder / f"{data}.npz",
               "--output", results, *more]
    process = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    if process.returncode:
        sys.exit(f"error: tenon run failed: {' '.join(str(word) for word in command)}")
    share = re.search(r"accel .* ([\d.]+) % of the MACs", process.stdout)
    with np.load(results) as file:
        return file[session.get_outputs()[0].name], share.group(1) if share else "0.0"


def one_of(rng, items):
    return items[rng.randrange(len(items))]


def line_of_text(rng):
    def word():
        kind = rng.random()
        text = one_of(rng, WORDS)
        return text.capitalize() if kind < 0.3 else str(rng.randint(0, 99999)) if kind < 0.5 else text
    while True:
        text = " ".join(word() for _ in range(rng.randint(2, 4)))
        if len(text) <= 18:
            return text


def picture_of(text, rng, height=48, width=320):
    font = ImageFont.truetype(str(one_of(rng, FONTS)), 36)
    paper, ink = [(rng.randint(low, high),) * 3 for low, high in ((215, 255), (0, 70))]
    picture = Image.new("RGB", (font.getbbox(text)[2] + 16, height), paper)
    ImageDraw.Draw(picture).text((8, height // 2), text, font=font, fill=ink, anchor="lm")
    used = min(width, picture.width)
    pixels = np.asarray(picture.resize((used, height), Image.Resampling.BILINEAR), np.float32)
    result = np.zeros((3, height, width), np.float32)
    result[:, :, :used] = pixels[:, :, ::-1].transpose(2, 0, 1) / 127.5 - 1
    return result


def lines(seed, count):
    rng = random.Random(seed)
    texts = []
    pictures = []
    for _ in range(count):
        texts.append(line_of_text(rng))
        pictures.append(picture_of(texts[-1], rng))
    return texts, np.stack(pictures)


def decode(scores, alphabet):
    """The best path of connectionist temporal classification; class 0 is the blank."""
    best = scores.argmax(-1)
    return "".join(alphabet[k] for i, k in enumerate(best) if k and (i == 0 or k != best[i - 1]))


def edits(a, b):
    """Levenshtein distance."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]


def measure_ocr(options):
    model = options.ocr / "ch_PP-OCRv4_rec_infer.onnx"
    session = onnxruntime.InferenceSession(str(model))
    alphabet = ["", *session.get_modelmeta().custom_metadata_map["character"].split("\n"), " "]
    texts, pictures = lines(1, options.limit or 160)
    np.savez(options.folder / "ocr.npz", x=pictures)
    np.savez(options.folder / "ocr_calibration.npz", x=lines(2, 48)[1])

    def error_rate(scores):
        wrong = sum(edits(decode(row, alphabet), text) for row, text in zip(scores, texts))
        return f"{100 * wrong / sum(map(len, texts)):.2f} %"

    real = error_rate([session.run(None, {"x": picture[None]})[0][0] for picture in pictures])
    shapes = "p2o.DynamicDimension.0=1,x_2=48,p2o.DynamicDimension.1=320"
    for name, more in (("ocr_int8", ()), ("ocr_mixed", ("--accuracy", "0.99"))):
        scores, share = run_on_device(options, model, session, shapes, "ocr", name, *more)
        scores = scores.reshape(len(texts), -1, len(alphabet))
        yield f"ocr {' '.join(more)}".strip(), "character error rate", real, error_rate(scores), share


def frames_of(path, block=64):
    """Blocks of frames of 512 samples, each behind the last 64 of the frame before, from 8 kHz resampled to 16 kHz."""
    with wave.open(str(path)) as file:
        audio = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float64) / 32768
    spectrum = np.zeros(len(audio) + 1, complex)
    spectrum[: len(audio) // 2 + 1] = np.fft.rfft(audio)
    wide = 2 * np.fft.irfft(spectrum, 2 * len(audio))
    frames = np.zeros((-(-len(wide) // (512 * block)) * block, 512), np.float32)
    frames.reshape(-1)[: len(wide)] = wide
    context = np.zeros((len(frames), 64), np.float32)
    context[1:] = frames[:-1, -64:]
    return np.concatenate((context, frames), axis=1).reshape(-1, block, 576)


def measure_silero(options):
    model = options.silero / "silero_vad_16k_sequence.onnx"
    files = sorted(options.sounds.rglob("*.wav"))
    if not files:
        sys.exit(f"error: {options.sounds} has no prompts")
    files = files[: options.limit or None]
    speech = np.array([file.stem not in TONES and file.parent.name != "silence" for file in files])
    blocks = [frames_of(file) for file in files]
    owner = np.repeat(np.arange(len(files)), [len(b) for b in blocks])
    frames = np.concatenate(blocks)
    state = {name: np.zeros((1, 1, 128), np.float32) for name in "hc"}
    some = np.random.default_rng(0).permutation(len(frames))[:64]
    for name, part in (("silero", frames), ("silero_calibration", frames[some])):
        np.savez(options.folder / f"{name}.npz", input=part.reshape(-1, 576), **state)
    session = onnxruntime.InferenceSession(str(model))

    def right(probabilities):
        loudest = np.zeros(len(files))
        np.maximum.at(loudest, owner, np.asarray(probabilities).reshape(len(frames), -1).max(1))
        counts = [f"{((loudest > 0.5) == kind)[speech == kind].sum()} of {(speech == kind).sum()}" for kind in (True, False)]
        return f"{counts[0]} speech, {counts[1]} others"

    real = right([session.run(None, {"input": block, **state})[0] for block in frames])
    results, share = run_on_device(options, model, session, "sequence_length=64", "silero", "silero_int8")
    yield "silero", "right answers", real, right(results), share


class Tokens:
    """WordPiece (Wu et al. 2016): each word as the longest known parts, greedily from its start."""

    def __init__(self, vocabulary):
        self.ids = {word: i for i, word in enumerate(vocabulary.read_text("utf8").split("\n"))}

    def word(self, text):
        parts, start = [], 0
        while start < len(text):
            prefix = "##" if start else ""
            end = next((e for e in range(len(text), start, -1) if prefix + text[start:e] in self.ids), start)
            if end == start:
                return [self.ids["[UNK]"]]
            parts.append(self.ids[prefix + text[start:end]])
            start = end
        return parts

    def sentence(self, text, size):
        """Ids of one sentence, padded with zeros, and the mask of the tokens that are there."""
        parts = [i for word in re.findall(r"\w+|[^\w\s]", text.lower()) for i in self.word(word)]
        ids = [self.ids["[CLS]"], *parts[: size - 2], self.ids["[SEP]"]]
        return np.pad(ids, (0, size - len(ids))), np.arange(size) < len(ids)


def measure_minilm(options):
    sys.path.append("scripts/peers")
    import minilm
    import onnx
    model = options.folder / "minilm.onnx"
    onnx.save(minilm.build(minilm.load(options.minilm / "model.safetensors")), model)
    with gzip.open(options.transcripts, "rt") as file:
        texts = [line.split(":", 1)[1].strip() for line in file if ":" in line and line[0] != ";"]
    texts = sorted({text for text in texts if len(text.split()) >= 4 and text[0] not in "[("})
    random.Random(3).shuffle(texts)
    tokens = Tokens(options.minilm / "vocab.txt")
    ids, masks = (np.array(part, np.int64) for part in zip(*(tokens.sentence(text, 64) for text in texts)))
    some = slice(64, 64 + (options.limit or len(texts)))
    for name, part in (("minilm", some), ("minilm_calibration", slice(64))):
        np.savez(options.folder / f"{name}.npz", tokens=ids[part], mask=masks[part])
    session = onnxruntime.InferenceSession(str(model))
    real = np.concatenate([session.run(None, {"tokens": i[None], "mask": m[None]})[0]
                           for i, m in zip(ids[some], masks[some])])
    for name, more in (("minilm_int8", ()), ("minilm_mixed", ("--accuracy", "0.991"))):
        results, share = run_on_device(options, model, session, "N=1,T=64", "minilm", name, *more)
        results = results.reshape(real.shape)
        cosine = (real * results).sum(1) / np.linalg.norm(real, axis=1) / np.linalg.norm(results, axis=1)
        yield f"minilm {' '.join(more)}".strip(), "mean cosine to float", "1", f"{cosine.mean():.4f}", share


def photograph(path, size=224):
    """The picture as the network wants it: channels first, by the mean and deviation of ImageNet's."""
    with Image.open(path) as file:
        edge = size // 16  # an eighth of the picture is cut off
        wide = file.convert("RGB").resize((size + 2 * edge,) * 2, Image.Resampling.BICUBIC)
    pixels = np.asarray(wide.crop((edge, edge, edge + size, edge + size)), np.float32) / 255
    return ((pixels - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)).transpose(2, 0, 1).astype(np.float32)


def measure_efficientnet(options):
    sys.path.append("scripts/peers")
    import checkpoint
    import models
    import onnx
    model = options.folder / "efficientnet.onnx"
    weights = checkpoint.load(options.efficientnet / "efficientnet-lite0-57934424.pth")
    onnx.save(models.trained(models.efficientnet_lite0(), weights, epsilon=1e-3), model)
    files = sorted(options.pictures.glob("imagenet_*.jpg"))[: options.limit or None]
    pictures = np.stack([photograph(file) for file in files])
    classes = np.array([int(file.stem.split("_")[2]) for file in files])
    others = sorted(options.pictures.glob("cifar*.png"))
    np.savez(options.folder / "efficientnet.npz", image=pictures)
    np.savez(options.folder / "efficientnet_calibration.npz", image=np.stack([photograph(file) for file in others]))
    session = onnxruntime.InferenceSession(str(model))
    real = np.concatenate([session.run(None, {"image": picture[None]})[0] for picture in pictures]).argmax(1)

    def right(found):
        return f"{(found == classes).sum()} of {len(classes)}"

    results, share = run_on_device(options, model, session, None, "efficientnet", "efficientnet_int8")
    found = results.reshape(len(files), -1).argmax(1)
    yield ("efficientnet", "right classes; those of float", f"{right(real)}",
           f"{right(found)}; {(found == real).sum()} of {len(files)}", share)


def main():
    parser = argparse.ArgumentParser()
    for name in ("models", "device", "tenon"):
        parser.add_argument(f"--{name}")
    for name in ("folder", "sounds", "transcripts", "ocr", "silero", "minilm", "efficientnet", "pictures"):
        parser.add_argument(f"--{name}", type=pathlib.Path)
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    print("| model | measure | float | int8 on the device | MACs on the accelerator |\n| --- | --- | --- | --- | --- |")
    for name in options.models.split(","):
        for row in {"ocr": measure_ocr, "silero": measure_silero, "minilm": measure_minilm,
                    "efficientnet": measure_efficientnet}[name](options):
            print("| {} | {} | {} | {} | {} % |".format(*row), flush=True)


main()
