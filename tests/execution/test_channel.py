"""Messages between processes arrive whole or not at all."""

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from adbench.execution.workers.channel import MAX_BYTES, Channel, Closed


@pytest.fixture
def ends() -> Iterator[tuple[Channel, socket.socket]]:
    left, right = socket.socketpair()
    with left, right:
        yield Channel(left), right


def framed(body: bytes) -> bytes:
    return struct.pack("!Q", len(body)) + body


def test_a_message_arrives_whole_from_any_pieces(ends: tuple[Channel, socket.socket]) -> None:
    channel, other = ends
    message = {"do": "x" * 100_000, "n": [1, 2.5, None]}
    raw = framed(json.dumps(message).encode())

    def drip() -> None:
        for start in range(0, len(raw), 7_001):
            other.sendall(raw[start : start + 7_001])

    thread = threading.Thread(target=drip)
    thread.start()
    assert channel.receive(timeout=10) == message
    thread.join()


def test_arrays_arrive_with_their_bits_types_and_shapes(ends: tuple[Channel, socket.socket]) -> None:
    channel, other = ends
    there = Channel(other)
    for sent in (np.array([[1.5, -0.0], [np.nan, np.inf]]), np.float32(0.1), np.zeros((0, 3)), np.arange(6)[::2]):
        channel.send({"parts": [{"one": sent}]})
        got = there.receive(timeout=5)["parts"][0]["one"]
        assert (got.dtype, got.shape, got.tobytes()) == (sent.dtype, sent.shape, sent.tobytes())
        got[...] = 0  # it may be changed
    with pytest.raises(TypeError, match="cannot have a ndarray"):
        channel.send({"one": np.array([object()])})


def test_a_slow_message_does_not_outlast_the_deadline(ends: tuple[Channel, socket.socket]) -> None:
    """Single bytes would reset a time-out that counts from the last byte."""
    channel, other = ends
    stop = threading.Event()

    def drip() -> None:
        while not stop.wait(0.01):
            other.sendall(b"\0")

    thread = threading.Thread(target=drip)
    other.sendall(struct.pack("!Q", 10_000))
    thread.start()
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        channel.receive(timeout=0.2)
    assert time.monotonic() - start < 5  # not a speed test: only that it ends long before 10,000 bytes
    stop.set()
    thread.join()


@pytest.mark.parametrize(
    "raw", [b"", b"\0\0", framed(b"{"), framed(b"[1]"), framed(b"\xff\xfe"), struct.pack("!Q", MAX_BYTES + 1)]
)
def test_an_invalid_message_closes_the_channel(ends: tuple[Channel, socket.socket], raw: bytes) -> None:
    channel, other = ends
    other.sendall(raw)
    other.close()
    with pytest.raises(Closed):
        channel.receive(timeout=5)


def test_sending_to_nobody_raises_closed(ends: tuple[Channel, socket.socket]) -> None:
    channel, other = ends
    other.close()
    with pytest.raises(Closed):
        channel.send({"do": "x" * 10_000})
