"""Several ranks that train together: `flow.distributed`, with the names of `torch.distributed`.

Ranks are processes (`minflow launch -n 4 program.py`), or threads of one process (`flow.virtual_ranks(4)`). Read next:
`communicator.py`, which moves arrays between ranks; `collectives.py`, the functions on tensors.
"""

from ..core.messages.suggestions import name_hints as _name_hints
from . import boxing as boxing  # registers kernels
from .boxing import bytes_sent as bytes_sent
from .collectives import (
    GroupMember as GroupMember,
    P2POp as P2POp,
    ProcessGroup as ProcessGroup,
    ReduceOp as ReduceOp,
    Work as Work,
    all_gather as all_gather,
    all_gather_into_tensor as all_gather_into_tensor,
    all_gather_object as all_gather_object,
    all_reduce as all_reduce,
    all_to_all as all_to_all,
    all_to_all_single as all_to_all_single,
    barrier as barrier,
    batch_isend_irecv as batch_isend_irecv,
    broadcast as broadcast,
    broadcast_object_list as broadcast_object_list,
    destroy_process_group as destroy_process_group,
    gather as gather,
    gather_object as gather_object,
    get_backend as get_backend,
    get_global_rank as get_global_rank,
    get_group_rank as get_group_rank,
    get_process_group_ranks as get_process_group_ranks,
    get_rank as get_rank,
    get_world_size as get_world_size,
    group as group,
    init_process_group as init_process_group,
    irecv as irecv,
    is_available as is_available,
    is_gloo_available as is_gloo_available,
    is_initialized as is_initialized,
    is_mpi_available as is_mpi_available,
    is_nccl_available as is_nccl_available,
    is_torchelastic_launched as is_torchelastic_launched,
    is_ucc_available as is_ucc_available,
    isend as isend,
    monitored_barrier as monitored_barrier,
    new_group as new_group,
    recv as recv,
    reduce as reduce,
    reduce_scatter as reduce_scatter,
    reduce_scatter_tensor as reduce_scatter_tensor,
    scatter as scatter,
    scatter_object_list as scatter_object_list,
    send as send,
)

__getattr__ = _name_hints("flow.distributed", globals(), {"nn": "nn."})
