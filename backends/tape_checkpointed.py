"""adbench's own reference engine with checkpoints: of a loop only √n states are kept, and its steps evaluated twice."""

from adbench import Namespace, tape

from . import tape as plain

VARIANT_OF = "tape"

xp = Namespace(tape, loop=tape.checkpointed_loop, linalg=vars(tape.linalg), derivative=plain.xp.derivative)

prepare, NESTED, KNOWN = plain.prepare, plain.NESTED, plain.KNOWN  # the rules are the same
