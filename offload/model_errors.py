"""Every error of keeping models, drawn as a tree.

    OffloadError (offload.errors)
    +-- ModelKeepingError
        +-- NoRoom              the disk is too full
        +-- NotKept             the model is not in kith's own folder
        +-- AdapterAlone        the file is an adapter for a model that is not here
        +-- NoSuchPackage   the package is not installed, or holds no model
        +-- CopyError
        |   +-- CopyRefused     the peer does not give this model
        |   +-- CopyBroken      the peer went away and did not come back
        |   +-- CopyMismatch    what the peer sent is not the file that was meant
        +-- HubError
            +-- HubName         the reference can't be read, or fits several files
            +-- HubUnreachable  the hub does not answer, or not in time
            +-- HubRefused      the hub answered with an error
            +-- HubMismatch     what arrived is not what the hub announced

Each leaf has `code` (stable), its docstring is the text for the user, `hint` is the next command. Must not know who
raises or catches it.
"""

from offload.errors import OffloadError

__all__ = [
    "AdapterAlone", "CopyBroken", "CopyError", "CopyMismatch", "CopyRefused", "HubError", "HubMismatch", "HubName",
    "HubRefused", "HubUnreachable", "ModelKeepingError", "NoRoom", "NoSuchPackage", "NotKept",
]


class ModelKeepingError(OffloadError):
    """The model could not be added or removed."""

    code = "models"


class NoRoom(ModelKeepingError):
    """There is not enough free space for this model."""

    code = "no_room"
    hint = "Free some space, or remove a model: kith models remove NAME"


class NotKept(ModelKeepingError):
    """This model's file is not in kith's own folder, so kith leaves it alone."""

    code = "not_kept"
    hint = "See where it lies: kith models info NAME"


class AdapterAlone(ModelKeepingError):
    """This is an adapter for a model that is not on this device."""

    code = "adapter_alone"
    hint = "Add the model that it is for first: kith models add FILE.gguf"


class NoSuchPackage(ModelKeepingError):
    """This package is not installed beside kith, or holds no model."""

    code = "no_such_package"
    hint = "Install it into kith's own environment first, without its dependencies if it is only data."


class CopyError(ModelKeepingError):
    """The model could not be copied from the peer."""

    code = "copy"
    hint = "Try again; what has arrived is kept and not sent twice."


class CopyRefused(CopyError):
    """The peer does not give this model."""

    code = "copy_refused"
    hint = "Its owner may allow it: kith grant edit THIS-NODE --services infer,mail,models"


class CopyBroken(CopyError):
    """The peer went away in the middle of the copy and did not come back; what came is kept."""

    code = "copy_broken"


class CopyMismatch(CopyError):
    """What the peer sent is not the file with this digest; it was deleted."""

    code = "copy_mismatch"
    hint = "Do not take models from that peer until its owner has looked at it."


class HubError(ModelKeepingError):
    """The model hub could not be used."""

    code = "hub"
    hint = "Try again; what has arrived is kept and not fetched twice."


class HubName(HubError):
    """This reference to a model hub can't be used."""

    code = "hub_name"
    hint = "Write hf:OWNER/REPOSITORY, or hf:OWNER/REPOSITORY:FILE.gguf"


class HubUnreachable(HubError):
    """The model hub does not answer."""

    code = "hub_unreachable"


class HubRefused(HubError):
    """The model hub refused."""

    code = "hub_refused"
    hint = "Check the name of the repository; a closed one can't be used."


class HubMismatch(HubError):
    """What the hub sent is not what it announced; it was deleted."""

    code = "hub_mismatch"
    hint = "Try again, and if it happens twice do not use this model."
