#include "runtime/vm/values.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "runtime/vm/pending.h"
#include "runtime/vm/rematerializer.h"
#include "support/try.h"

namespace tenon::runtime {

Expected<Word> import_word(RunState& run, const Tensor& tensor) {
  if (!tensor) return error("an input has an empty tensor", run.executable.name);
  const Word word = run.heap.tensor(run.heap.share(tensor), false);
  if (word.tag == Tag::kEmpty) return run.no_memory();
  if (run.rematerializer && word.tag == Tag::kTensor) {
    if (Status added = run.rematerializer->add_input(*static_cast<TensorObject*>(word.object)); !added) {
      run.heap.release(word);
      return std::unexpected(std::move(added.error()));
    }
  }
  return word;
}

// The word of an input. Lists are long, so the work is a list too.
Expected<Word> import_word(RunState& run, const Value& input) {
  struct Open {
    const Value* value;
    Object* owner;  // of the word to fill; nullptr: the input itself
    uint32_t index;
  };
  std::unordered_map<const ValueObject*, Object*> made;
  std::vector<Open> open{{&input, nullptr, 0}};
  Word result;
  const auto fail = [&](std::unexpected<Diagnostic> problem) {
    run.heap.release(result);
    return problem;
  };
  while (!open.empty()) {
    const auto [value, owner, index] = open.back();
    open.pop_back();
    if (!*value) return fail(error("an input has a missing value", run.executable.name));
    const ValueObject& object = *value->object;
    Word word;
    if (object.kind == ValueObject::Kind::kTensor) {
      auto imported = import_word(run, object.tensor);
      if (!imported) return fail(std::unexpected(std::move(imported.error())));
      word = *imported;
    } else if (object.kind != ValueObject::Kind::kData) {
      return fail(error("an input holds a function or a reference", run.executable.name));
    } else {
      const bool known =
          object.type == kTupleType
              ? object.constructor == 0
              : object.type < run.executable.types.size() &&
                    object.constructor < run.executable.types[object.type].constructors.size() &&
                    object.fields.size() == run.executable.types[object.type].constructors[object.constructor].fields;
      if (!known) return fail(error("an input has a value of no type of the model", run.executable.name));
      word.id = object.constructor;
      // A value that one handle has is met once.
      const auto before = value->object.use_count() > 1 ? made.find(&object) : made.end();
      if (object.fields.empty()) {
        word.tag = Tag::kConstructor;
        word.bits = object.type;
      } else if (before != made.end()) {
        word.tag = Tag::kCell;
        word.object = before->second;
        Heap::retain(word);
      } else {
        word.tag = Tag::kCell;
        word.object = run.heap.make(Tag::kCell, object.type, static_cast<uint32_t>(object.fields.size()));
        if (!word.object) return fail(run.no_memory());
        if (value->object.use_count() > 1) made.emplace(&object, word.object);
        for (uint32_t i = 0; i < object.fields.size(); ++i) open.push_back({&object.fields[i], word.object, i});
      }
    }
    if (owner) owner->words()[index] = word;
    else result = word;
  }
  return result;
}

Value export_word(const Word& word, ExportedObjects& made) {
  struct Open {
    const Word* word;
    Value* to;
  };
  Value result;
  std::vector<Open> open{{&word, &result}};
  while (!open.empty()) {
    const auto [from, to] = open.back();
    open.pop_back();
    if (from->tag == Tag::kPending) {
      if (const auto [before, is_new] = made.try_emplace(from->object); is_new) before->second = settled_tensor(*from);
      *to = made.at(from->object);
      continue;
    }
    if (from->is_object()) {
      if (const auto before = made.find(from->object); before != made.end()) {
        *to = before->second;
        continue;
      }
    }
    *to = Value::tuple({});
    ValueObject& object = *to->object;
    switch (from->tag) {
      case Tag::kEmpty: to->object.reset(); break;
      case Tag::kScalar:
        object.kind = ValueObject::Kind::kTensor;
        if (from->dtype == kUnknownSize) break;
        object.tensor = Tensor::for_overwrite(static_cast<DType>(from->dtype), {});
        __builtin_memcpy(object.tensor.bytes().data(), &from->bits, object.tensor.bytes().size());
        break;
      case Tag::kTensor:
        object.kind = ValueObject::Kind::kTensor;
        object.tensor = static_cast<const TensorObject*>(from->object)->tensor;
        break;
      case Tag::kConstructor:
        object.type = static_cast<uint32_t>(from->bits);
        object.constructor = from->id;
        break;
      case Tag::kCell:
        object.type = from->object->id;
        object.constructor = from->id;
        break;
      case Tag::kFunction:
      case Tag::kClosure: object.kind = ValueObject::Kind::kFunction; break;
      case Tag::kReference: object.kind = ValueObject::Kind::kReference; break;
      case Tag::kPending: break;
    }
    if (!from->is_object()) continue;
    made.emplace(from->object, *to);
    if (from->tag != Tag::kCell && from->tag != Tag::kReference) continue;
    object.fields.resize(from->object->length);
    for (uint32_t i = 0; i < from->object->length; ++i) open.push_back({&from->object->words()[i], &object.fields[i]});
  }
  return result;
}

Expected<std::vector<Value>> export_results(const RunState& run, std::span<const Word> words) {
  ExportedObjects made;
  std::vector<Value> results;
  for (size_t i = 0; i < words.size(); ++i) {
    const Port& port = run.executable.main().results[i];
    Value value = export_word(words[i], made);
    if (port.is_tensor() && !port.accepts(value.tensor()))
      return error(fmt::format("result {} became {}", to_string(port), describe(run.executable, value)));
    results.push_back(std::move(value));
  }
  return results;
}

}  // namespace tenon::runtime
