"""What a pickle would build, found out without building it.

torch runs nothing of a pickle but functions that it takes for safe. With some of these, a few bytes
fill the memory (`_codecs.encode` doubles a text at every call, `bytearray` takes any number), and a
tuple that holds itself twice, and so on, takes for ever to hash. So the instructions are followed
here first, with sizes in the place of values.
"""

import pickle
import pickletools
from collections.abc import Collection
from typing import IO, Any, NamedTuple

# a model of 10,000 tensors takes half a million
MOST_OPERATIONS = 1 << 20
# values in a tuple and in those inside it, each as often as it occurs; a tensor's have below 50
LARGEST_TUPLE = 1_000
ENCODE = "_codecs.encode"
# numpy writes the bytes of an array as text
ENCODING = "latin1"

STORAGES = ("Double", "Float", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")
# what `torch.save` names for tensors in plain containers
TENSORS = (
    "collections.OrderedDict",
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_parameter",
    "torch.Size",
    *(f"torch.{kind}Storage" for kind in STORAGES),
)
CONSTANTS = {"NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "BINFLOAT", "LONG1"}
CONSTANTS |= {"EMPTY_TUPLE", "EMPTY_LIST", "EMPTY_DICT", "EMPTY_SET", "SHORT_BINSTRING"}
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
# how many values these take off the stack
TAKEN = {"APPEND": 1, "SETITEM": 2, "BUILD": 1}


class Value(NamedTuple):
    """How many values there are in one, and itself if it is a text, a tuple or a function."""

    size: int = 1
    text: str | None = None
    function: str | None = None
    items: tuple[Any, ...] = ()


class Pickle:
    """The stack and the memo of a pickle, followed to its end."""

    def __init__(self, allowed: Collection[str]):
        self.allowed = allowed
        self.stack: list[Value] = []
        self.outer: list[list[Value]] = []
        self.memo: dict[int, Value] = {}

    def follow(self, file: IO[bytes]) -> None:
        """Raises `UnpicklingError` if it would build more than it should, also if it is damaged."""
        try:
            for number, (operation, argument, _) in enumerate(pickletools.genops(file)):
                if number == MOST_OPERATIONS:
                    raise pickle.UnpicklingError("too many operations")
                self.step(operation.name, argument)
        except (ValueError, IndexError, KeyError) as error:
            raise pickle.UnpicklingError("damaged") from error

    def step(self, name: str, argument: Any) -> None:
        if name in CONSTANTS:
            self.stack.append(Value())
        elif name == "BINUNICODE":
            self.stack.append(Value(text=argument))
        elif name == "GLOBAL":
            self.stack.append(Value(function=self.function(argument)))
        elif name in TUPLES:
            self.push_tuple(self.take(TUPLES[name]))
        elif name in ("BINGET", "LONG_BINGET"):
            self.stack.append(self.memo[argument])
        elif name in ("BINPUT", "LONG_BINPUT"):
            self.memo[argument] = self.stack[-1]
        elif name in ("REDUCE", "NEWOBJ"):
            self.push_called(*self.take(2))
        elif name == "BINPERSID":
            self.take(1)
            self.stack.append(Value())
        elif name in TAKEN:
            self.take(TAKEN[name])
        elif name == "MARK":
            self.outer.append(self.stack)
            self.stack = []
        elif name in ("TUPLE", "APPENDS", "SETITEMS"):
            items, self.stack = self.stack, self.outer.pop()
            if name == "TUPLE":
                self.push_tuple(items)
        elif name not in ("PROTO", "STOP"):
            raise pickle.UnpicklingError(f"the operation {name}")

    def take(self, count: int) -> list[Value]:
        if len(self.stack) < count:
            raise IndexError
        taken = self.stack[-count:]
        del self.stack[-count:]
        return taken

    def function(self, name: str) -> str:
        # genops gives module and name with a blank between them; names have none
        function = name.replace(" ", ".")
        if name.count(" ") != 1 or function not in self.allowed:
            raise pickle.UnpicklingError(f"the name {function}")
        return function

    def push_tuple(self, items: list[Value]) -> None:
        size = 1 + sum(item.size for item in items)
        if size > LARGEST_TUPLE:
            raise pickle.UnpicklingError("a huge tuple")
        self.stack.append(Value(size, items=tuple(items)))

    def push_called(self, function: Value, given: Value) -> None:
        """The result of a call, which holds at most what was given."""
        if function.function == ENCODE:
            texts = [item.text for item in given.items]
            if len(texts) != 2 or texts[0] is None or texts[1] != ENCODING:
                raise pickle.UnpicklingError("an unusual encoding")
        self.stack.append(Value(1 + given.size))
