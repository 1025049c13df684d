"""GGUF files as bytes with known positions, so that a test can make one lie.

Layout (ggml's gguf.md): "GGUF", u32 version, u64 tensor count, u64 key count; keys {string, u32 type, value};
tensors {string, u32 dimensions, u64 each, u32 type, u64 offset}; padding to the alignment; data.
A string is a u64 length and its bytes.
"""
import struct

TENSOR_COUNT_AT = 8
KEY_COUNT_AT = 16
U32, F32, STRING, ARRAY = 4, 6, 8, 9
SIZE_OF_TYPE = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


class Key:
    """One metadata key: where its length, its value's type and its value stand."""

    def __init__(self, name, at, type_at, value_at, end):
        self.name, self.at, self.type_at, self.value_at, self.end = name, at, type_at, value_at, end


class Tensor:
    def __init__(self, name, at, dimensions_at, dimensions, type_at, offset_at):
        self.name, self.at, self.dimensions_at, self.dimensions = name, at, dimensions_at, dimensions
        self.type_at, self.offset_at = type_at, offset_at


class Gguf:
    """A valid file, read into memory, with the positions of its fields."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = bytearray(file.read())
        self.position = 8
        self.tensor_count, self.key_count = self.take("<QQ")
        self.keys = {}
        self.tensors = {}
        for _ in range(self.key_count):
            self._read_key()
        self.keys_end = self.position
        for _ in range(self.tensor_count):
            self._read_tensor()
        self.header_end = self.position

    def take(self, form):
        values = struct.unpack_from(form, self.data, self.position)
        self.position += struct.calcsize(form)
        return values

    def take_string(self):
        (length,) = self.take("<Q")
        self.position += length
        return self.data[self.position - length:self.position].decode(errors="replace")

    def _skip_value(self, kind):
        if kind == STRING:
            self.take_string()
        elif kind == ARRAY:
            inner, count = self.take("<IQ")
            if inner in SIZE_OF_TYPE:
                self.position += SIZE_OF_TYPE[inner] * count
            else:
                for _ in range(count):
                    self._skip_value(inner)
        else:
            self.position += SIZE_OF_TYPE[kind]

    def _read_key(self):
        at = self.position
        name = self.take_string()
        type_at = self.position
        (kind,) = self.take("<I")
        value_at = self.position
        self._skip_value(kind)
        self.keys[name] = Key(name, at, type_at, value_at, self.position)

    def _read_tensor(self):
        at = self.position
        name = self.take_string()
        dimensions_at = self.position
        (count,) = self.take("<I")
        dimensions = self.take(f"<{count}Q")
        type_at = self.position
        self.take("<I")
        offset_at = self.position
        self.take("<Q")
        self.tensors[name] = Tensor(name, at, dimensions_at, dimensions, type_at, offset_at)

    def patched(self, at, form, *values):
        """The file's bytes with other ones at `at`."""
        data = bytearray(self.data)
        struct.pack_into(form, data, at, *values)
        return bytes(data)

    def with_key(self, name, kind, value):
        """The file's bytes with one more key in front of all others; the data moves on by a multiple of its alignment."""
        entry = string(name) + struct.pack("<I", kind) + value
        data = bytearray(self.data)
        data[24:24] = entry
        struct.pack_into("<Q", data, KEY_COUNT_AT, self.key_count + 1)
        # Filled up behind the header, where padding is.
        fill = -(self.header_end + len(entry)) % 32 - (-self.header_end % 32)
        end = self.header_end + len(entry)
        if fill >= 0:
            data[end:end] = bytes(fill)
        else:
            del data[end:end - fill]
        return bytes(data)


def write_sparse_llama(source, path, layers=40, dim=4096, feed_forward=11008):
    """A Q8_0 llama of `layers` whose data is one hole: gigabytes in name, kilobytes on disk. Returns its size.

    Metadata comes from `source` (a llama GGUF) with other sizes; its tokenizer stays.
    """
    base = Gguf(source)
    head = bytearray(base.data[:base.keys_end])
    heads = 32
    sizes = {"block_count": layers, "embedding_length": dim, "feed_forward_length": feed_forward,
             "attention.head_count": heads, "attention.head_count_kv": heads,
             "attention.key_length": dim // heads, "attention.value_length": dim // heads,
             "rope.dimension_count": dim // heads}
    for name, value in sizes.items():
        key = base.keys.get("llama." + name)
        if key is not None:
            struct.pack_into("<I", head, key.value_at, value)
    vocabulary = base.tensors["token_embd.weight"].dimensions[1]
    shapes = [("token_embd.weight", (dim, vocabulary)), ("output_norm.weight", (dim,)),
              ("output.weight", (dim, vocabulary))]
    for layer in range(layers):
        for name, shape in (("attn_norm", (dim,)), ("attn_q", (dim, dim)), ("attn_k", (dim, dim)),
                            ("attn_v", (dim, dim)), ("attn_output", (dim, dim)), ("ffn_norm", (dim,)),
                            ("ffn_gate", (dim, feed_forward)), ("ffn_up", (dim, feed_forward)),
                            ("ffn_down", (feed_forward, dim))):
            shapes.append((f"blk.{layer}.{name}.weight", shape))
    offset = 0
    infos = bytearray()
    for name, shape in shapes:
        flat = len(shape) == 1
        elements = shape[0] if flat else shape[0] * shape[1]
        infos += string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        infos += struct.pack("<IQ", 0 if flat else 8, offset)
        size = elements * 4 if flat else elements // 32 * 34
        offset += (size + 31) // 32 * 32
    struct.pack_into("<Q", head, TENSOR_COUNT_AT, len(shapes))
    header = bytes(head + infos)
    size = (len(header) + 31) // 32 * 32 + offset
    with open(path, "wb") as file:
        file.write(header)
        file.truncate(size)
    return size
