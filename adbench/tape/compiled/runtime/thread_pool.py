"""The threads that help with loops over large arrays.

Python starts the threads; they run machine code only, never touch Python, and wait without the interpreter's lock. One
loop at a time has helpers: a loop of another Python thread that comes meanwhile runs alone. The blocks of a loop are
fixed, and it does not matter who computes them, so results have the same bits with any number of threads.

A child after a fork has no helpers; its first parallel loop starts them. At exit the helpers are stopped.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import sys
import threading
from dataclasses import dataclass

import numpy as np

from adbench.tape.compiled.lowering.loops.loop_nest import Helpers
from adbench.tape.machine.llvm import Loaded

PLACES = {"open": 1, "task": 2, "shared": 3, "blocks": 4, "wanted": 5, "joined": 6, "chunk": 7}
PLACES |= {"next": 8, "inside": 16, "busy": 24, "stop": 32, "started": 40, "mutex": 48, "condition": 64}
WORDS, STOP, STARTED = 80, PLACES["stop"], PLACES["started"]
"""Words of the pool's memory: about the current loop, whose number is the first word; counters, each in its own cache
line; the system's lock."""
SPINS = 20_000
"""Looks for a new loop before a helper sleeps: about 10 µs."""

ADDRESSES = "\n".join(f"  %{name}.at = getelementptr i64, ptr %pool, i64 {at}" for name, at in PLACES.items())

SOURCE = f"""
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @sched_yield()
declare i32 @PyGILState_Check()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyObject_CallNoArgs(ptr)
declare void @PyErr_Clear()
declare void @Py_DecRef(ptr)
@environment = global [1 x ptr] zeroinitializer, align 8

define void @prepare(ptr %pool) {{
{ADDRESSES}
  call i32 @pthread_mutex_init(ptr %mutex.at, ptr null)
  call i32 @pthread_cond_init(ptr %condition.at, ptr null)
  ret void
}}

define void @stop(ptr %pool) {{
{ADDRESSES}
  call i32 @pthread_mutex_lock(ptr %mutex.at)
  store atomic i64 1, ptr %stop.at seq_cst, align 8
  call i32 @pthread_cond_broadcast(ptr %condition.at)
  call i32 @pthread_mutex_unlock(ptr %mutex.at)
  ret void
}}

define void @take_blocks(ptr %pool, ptr %task, ptr %shared, i64 %blocks, i64 %chunk) {{
{ADDRESSES}
  br label %again
again:
  %first = atomicrmw add ptr %next.at, i64 %chunk seq_cst
  %some = icmp slt i64 %first, %blocks
  br i1 %some, label %work, label %done
work:
  %end = add i64 %first, %chunk
  %fits = icmp slt i64 %end, %blocks
  %last = select i1 %fits, i64 %end, i64 %blocks
  call void %task(ptr %shared, i64 %first, i64 %last)
  br label %again
done:
  ret void
}}

define void @help(ptr %pool) {{
{ADDRESSES}
  br label %idle
idle:
  %seen = phi i64 [ 0, %0 ], [ %now, %late ], [ %now, %left ]
  br label %spin
spin:
  %turn = phi i64 [ 0, %idle ], [ %turn.next, %look ]
  %tired = icmp sge i64 %turn, {SPINS}
  br i1 %tired, label %sleep, label %look
look:
  %turn.next = add i64 %turn, 1
  %generation = load atomic i64, ptr %pool seq_cst, align 8
  %is.new = icmp ne i64 %generation, %seen
  br i1 %is.new, label %sleep, label %spin
sleep:
  call i32 @pthread_mutex_lock(ptr %mutex.at)
  br label %check
check:
  %now = load atomic i64, ptr %pool seq_cst, align 8
  %ended = load atomic i64, ptr %stop.at seq_cst, align 8
  %is.ended = icmp ne i64 %ended, 0
  br i1 %is.ended, label %leave, label %check.new
check.new:
  %is.same = icmp eq i64 %now, %seen
  br i1 %is.same, label %wait, label %enter
wait:
  call i32 @pthread_cond_wait(ptr %condition.at, ptr %mutex.at)
  br label %check
leave:
  call i32 @pthread_mutex_unlock(ptr %mutex.at)
  ret void
enter:
  %is.open = load i64, ptr %open.at, align 8
  %wanted = load i64, ptr %wanted.at, align 8
  %joined = load i64, ptr %joined.at, align 8
  %is.wanted = icmp slt i64 %joined, %wanted
  %was.open = icmp ne i64 %is.open, 0
  %may = and i1 %is.wanted, %was.open
  br i1 %may, label %join, label %late
late:
  call i32 @pthread_mutex_unlock(ptr %mutex.at)
  br label %idle
join:
  %more = add i64 %joined, 1
  store i64 %more, ptr %joined.at, align 8
  %before = atomicrmw add ptr %inside.at, i64 1 seq_cst
  %task = load ptr, ptr %task.at, align 8
  %shared = load ptr, ptr %shared.at, align 8
  %blocks = load i64, ptr %blocks.at, align 8
  %chunk = load i64, ptr %chunk.at, align 8
  call i32 @pthread_mutex_unlock(ptr %mutex.at)
  call void @take_blocks(ptr %pool, ptr %task, ptr %shared, i64 %blocks, i64 %chunk)
  br label %left
left:
  %after = atomicrmw sub ptr %inside.at, i64 1 seq_cst
  br label %idle
}}

define void @parallel(ptr %pool, ptr %task, ptr %shared, i64 %blocks, i64 %helpers, ptr %start) {{
{ADDRESSES}
  %gil = call i32 @PyGILState_Check()
  %has.gil = icmp ne i32 %gil, 0
  br i1 %has.gil, label %count, label %begin
count:
  %started = load atomic i64, ptr %started.at seq_cst, align 8
  %few = icmp slt i64 %started, %helpers
  br i1 %few, label %call, label %release
call:
  %answer = call ptr @PyObject_CallNoArgs(ptr %start)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %clear, label %drop
clear:
  call void @PyErr_Clear()
  br label %release
drop:
  call void @Py_DecRef(ptr %answer)
  br label %release
release:
  %state.held = call ptr @PyEval_SaveThread()
  br label %begin
begin:
  %state = phi ptr [ null, %0 ], [ %state.held, %release ]
  %pair = cmpxchg ptr %busy.at, i64 0, i64 1 seq_cst seq_cst
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %open.loop, label %alone
alone:
  call void %task(ptr %shared, i64 0, i64 %blocks)
  br label %finish
open.loop:
  %shares = mul i64 %helpers, 16
  %part = udiv i64 %blocks, %shares
  %chunk = call i64 @llvm.smax.i64(i64 %part, i64 1)
  call i32 @pthread_mutex_lock(ptr %mutex.at)
  store ptr %task, ptr %task.at, align 8
  store ptr %shared, ptr %shared.at, align 8
  store i64 %blocks, ptr %blocks.at, align 8
  store i64 %chunk, ptr %chunk.at, align 8
  store i64 %helpers, ptr %wanted.at, align 8
  store i64 0, ptr %joined.at, align 8
  store atomic i64 0, ptr %next.at seq_cst, align 8
  store i64 1, ptr %open.at, align 8
  %old = atomicrmw add ptr %pool, i64 1 seq_cst
  call i32 @pthread_cond_broadcast(ptr %condition.at)
  call i32 @pthread_mutex_unlock(ptr %mutex.at)
  call void @take_blocks(ptr %pool, ptr %task, ptr %shared, i64 %blocks, i64 %chunk)
  call i32 @pthread_mutex_lock(ptr %mutex.at)
  store i64 0, ptr %open.at, align 8
  call i32 @pthread_mutex_unlock(ptr %mutex.at)
  br label %await
await:
  %turn = phi i64 [ 0, %open.loop ], [ %turn.next, %await.more ]
  %turn.next = add i64 %turn, 1
  %inside = load atomic i64, ptr %inside.at seq_cst, align 8
  %is.done = icmp eq i64 %inside, 0
  br i1 %is.done, label %close, label %await.more.check
await.more.check:
  %long = icmp sgt i64 %turn, {SPINS}
  br i1 %long, label %yield, label %await.more
yield:
  call i32 @sched_yield()
  br label %await.more
await.more:
  br label %await
close:
  store atomic i64 0, ptr %busy.at seq_cst, align 8
  br label %finish
finish:
  br i1 %has.gil, label %take, label %return
take:
  call void @PyEval_RestoreThread(ptr %state)
  br label %return
return:
  ret void
}}
declare i64 @llvm.smax.i64(i64, i64)
"""


@dataclass
class _Pool:
    """The memory and the threads of the pool."""

    memory: np.ndarray
    loaded: Loaded
    helpers: int
    threads: list[threading.Thread]

    def call(self, name: str) -> None:
        """Run one of the pool's functions on its memory, without the interpreter's lock."""
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.loaded.address(name))(int(self.memory.ctypes.data))

    def start(self) -> None:
        while len(self.threads) < self.helpers and not self.memory[STOP]:
            thread = threading.Thread(target=self.call, args=("help",), name="adbench loop helper", daemon=True)
            thread.start()
            self.threads.append(thread)
            self.memory[STARTED] = len(self.threads)

    def after_fork(self) -> None:
        """Forget the parent's threads and its lock."""
        is_stopped = self.memory[STOP]
        self.threads = []
        self.memory[:] = 0
        self.memory[STOP] = is_stopped
        self.call("prepare")

    def stop(self) -> None:
        """End the helpers; later loops run alone."""
        self.call("stop")
        for thread in self.threads:
            thread.join(timeout=10.0)
        self.memory[STARTED] = 2**40


@functools.cache
def _pool() -> _Pool:
    pool = _Pool(np.zeros(WORDS + 8, np.int64), Loaded(SOURCE, [], level=1), 0, [])
    pool.call("prepare")
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=pool.after_fork)
    atexit.register(pool.stop)
    return pool


def helpers_for(threads: int) -> Helpers | None:
    """The helpers for loops on this many threads, or None for one thread."""
    if threads == 1 or sys.platform == "win32":
        return None
    pool = _pool()
    pool.helpers = max(pool.helpers, threads - 1)
    return Helpers(threads - 1, pool.loaded.address("parallel"), int(pool.memory.ctypes.data), pool.start)
