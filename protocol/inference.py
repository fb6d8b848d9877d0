"""Delegated inference, /kith/infer/1: the frames and both machines under one name.

The work is done in frames/inference.py (types), requester.py (the side that asks) and provider.py (the side that
computes).
"""

from protocol.frames.inference import (
    Accepted,
    Cancel,
    End,
    ErrorCode,
    ErrorFrame,
    FinishReason,
    InferFrame,
    InferRequest,
    Lane,
    Part,
    PastCall,
    Progress,
    ProgressState,
    PromptParts,
    PromptTokens,
    RefusalCode,
    Refused,
    Role,
    TokenFrame,
    ToolCallFrame,
    ToolChoice,
    ToolOffer,
    Usage,
)
from protocol.provider import (
    Admit,
    BreakOff,
    Conclude,
    Decline,
    Output,
    ProposeCall,
    ProviderMachine,
    ProviderState,
    Report,
    Serve,
    Spent,
    StopReason,
    StopWork,
)
from protocol.requester import (
    Admitted,
    Begin,
    BreakReason,
    BrokeOff,
    Cancelled,
    CancelWanted,
    Completed,
    Declined,
    Progressed,
    RequesterMachine,
    RequesterState,
    ResumePoint,
    TextArrived,
    ToolCallArrived,
)

__all__ = [
    "Accepted", "Admit", "Admitted", "Begin", "BreakOff", "BreakReason", "BrokeOff", "Cancel", "CancelWanted",
    "Cancelled",
    "Completed", "Conclude", "Decline", "Declined", "End", "ErrorCode", "ErrorFrame", "FinishReason", "InferFrame",
    "InferRequest", "Lane", "Output", "Part", "PastCall", "Progress", "ProgressState", "Progressed", "PromptParts",
    "PromptTokens", "ProposeCall", "ProviderMachine", "ProviderState", "RefusalCode", "Refused", "Report",
    "RequesterMachine", "RequesterState", "ResumePoint", "Role", "Serve", "Spent", "StopReason", "StopWork",
    "TextArrived", "TokenFrame", "ToolCallArrived", "ToolCallFrame", "ToolChoice", "ToolOffer", "Usage",
]
