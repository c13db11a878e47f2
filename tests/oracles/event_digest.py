"""What streams of events are compared by, to the last bit and however they are cut."""

import hashlib

from cmaxslam_fbp.events import Events


def event_digest(chunks):
    """Return the number of events, and the SHA-256 of their columns."""
    events = Events.concatenate(chunks)
    columns = (events.t_ns, events.x, events.y, events.p)
    return len(events), hashlib.sha256(b"".join(column.tobytes() for column in columns)).hexdigest()
