"""Several processes of one run, on torchrun and torch.distributed: each has its own streams, all have one gradient."""

import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from ...errors import ElmoError, Errors, OtherProcessError, ProcessError, SettingsError
from .torchrun import environment, local_rank

TIMEOUT = timedelta(minutes=10)  # of what all do at the same time
PATIENCE = timedelta(days=1)  # while the first process prepares a text, evaluates or writes


class Group:
    """The processes of a run; a single one needs no torch.distributed.

    rank: this one's number; size: how many there are; device: where the messages of a step lie; patient: the same
    processes, who wait for each other longer.
    """

    def __init__(
        self,
        rank: int = 0,
        size: int = 1,
        device: torch.device | None = None,
        patient: dist.ProcessGroup | None = None,
    ) -> None:
        self.rank, self.size, self._patient = rank, size, patient
        self.device = torch.device("cpu") if device is None else device

    @property
    def first(self) -> bool:
        """Whether this process writes the files."""
        return self.rank == 0

    def sum(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The sums over all processes, which all get; as one message."""
        if self.size == 1:
            return list(tensors)
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        with _telling():
            dist.all_reduce(flat)
        return [part.view(tensor.shape) for part, tensor in zip(flat.split([t.numel() for t in tensors]), tensors)]

    def union(self, numbers: Tensor) -> Tensor:
        """The distinct numbers of all processes, sorted. numbers: of any shape, int64, at least one."""
        distinct: Tensor = torch.unique(numbers)
        if self.size == 1:
            return distinct
        longest = self._largest(len(distinct))
        # filled up with one of its own: all messages have one size
        filled = torch.cat([distinct, distinct[:1].expand(longest - len(distinct))]).to(self.device)
        united: Tensor = torch.unique(torch.cat(self._gather(filled)))
        return united.to(numbers.device)

    def all(self, tensor: Tensor, dim: int) -> Tensor:
        """The processes' tensors, of one shape, side by side along dim."""
        if self.size == 1:
            return tensor
        return torch.cat([part.to(tensor.device) for part in self._gather(tensor.contiguous().to(self.device))], dim)

    def any(self, flag: int) -> int:
        """The largest of the processes' flags: one that is asked to stop stops all."""
        return flag if self.size == 1 else self._largest(flag)

    def shared(self, number: float) -> float:
        """The first process's number, for all."""
        if self.size == 1:
            return number
        value = torch.tensor([number], dtype=torch.float64)
        with _telling():
            dist.broadcast(value, 0, group=self._patient)
        return value.item()

    @torch.no_grad()
    def copy_first(self, tensors: Sequence[Tensor]) -> None:
        """Fill the tensors with the first process's values."""
        if self.size > 1:
            with _telling():
                for tensor in tensors:
                    dist.broadcast(tensor, 0)

    def check_alike(self, value: object, error: ElmoError) -> None:
        """Raise the error in a process whose value, shown as text, is not the first one's."""
        mine = zlib.crc32(repr(value).encode())
        alike = self.shared(mine) == mine
        with self.together():
            if not alike:
                raise error

    @contextmanager
    def together(self) -> Iterator[None]:
        """All processes come to the end of the block, or none goes on; they wait as long as it takes.

        An error in one is raised there, so that it is told once, and OtherProcessError in the others.
        """
        failed: Exception | None = None
        try:
            yield
        except Exception as error:
            if self.size == 1 or isinstance(error, ProcessError):  # one that can't tell the others, or need not
                raise
            failed = error
        if self.size == 1:
            return
        try:
            found = self._largest(0 if failed is None else self.size - self.rank, self._patient)
        except ProcessError:
            if failed is None:
                raise
            raise failed from None
        if not found:
            return
        teller = self.size - found
        if failed is not None and teller == self.rank:
            raise failed
        raise OtherProcessError(Errors.PROCESS_FAILED.format(rank=teller)) from failed

    def _largest(self, number: int, patient: dist.ProcessGroup | None = None) -> int:
        value = torch.tensor([number], device=self.device if patient is None else "cpu")
        with _telling():
            dist.all_reduce(value, dist.ReduceOp.MAX, group=patient)
        return int(value)

    def _gather(self, tensor: Tensor) -> list[Tensor]:
        parts = [torch.empty_like(tensor) for _ in range(self.size)]
        with _telling():
            dist.all_gather(parts, tensor)
        return parts


@contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # all that gloo and NCCL raise
        # without the place in their source before, and the advice behind
        reason = re.sub(r"^\[\S*\] ", "", str(error).strip().split("\n")[0]).split(". ")[0]
        raise ProcessError(Errors.PROCESS_DIED.format(reason=reason)) from error


@contextmanager
def processes(device: str) -> Iterator[Group]:
    """The group that torchrun has started this process in; without torchrun, this process alone.

    gloo on CPUs, NCCL on GPUs (a GPU for each process, by LOCAL_RANK). Raises ProcessError, also for variables
    that torchrun would not set so, and SettingsError where there is no such GPU.
    """
    _, size = environment()
    number = local_rank()
    where = torch.device(device, number) if device == "cuda" else torch.device(device)
    if device == "cuda" and torch.cuda.device_count() <= number:
        raise SettingsError(Errors.NO_GPU.format(got=torch.cuda.device_count(), expected=number + 1))
    if size == 1:
        yield Group(device=where)
        return
    if device == "cuda":
        torch.cuda.set_device(where)
    with _telling():
        dist.init_process_group("nccl" if device == "cuda" else "gloo", timeout=TIMEOUT)
    try:
        with _telling():
            patient = dist.new_group(timeout=PATIENCE, backend="gloo")
        yield Group(dist.get_rank(), dist.get_world_size(), where, patient)
    except ProcessError:  # to leave in good order would be to wait for the dead
        raise
    except BaseException:
        dist.destroy_process_group()
        raise
    dist.destroy_process_group()
