"""Consumers of the protocol: readers of changes, with the next snapshot that each needs."""

from tablestore.server.protocol.exchange import Call, understood
from tablestore.server.protocol.listpages import page_of
from tablestore.server.protocol.restservice import RestService


def list_consumers(service: RestService, call: Call) -> dict[str, object]:
    """A page of the consumers of a table."""
    consumers = {consumer.id: consumer.next_snapshot for consumer in service.table(call.names).consumers()}
    names, token = page_of(consumers, call.query)
    return {"consumers": [{"consumerId": name, "nextSnapshot": consumers[name]} for name in names], "nextPageToken": token}


def reset_consumer(service: RestService, call: Call) -> None:
    """Lets a consumer go on at a snapshot, or forgets it."""
    request = call.json()
    consumer_id, next_id = understood(lambda: (request.text("consumerId"), request.optional_integer("nextSnapshotId")))
    table = service.table(call.names)
    if next_id is None:
        table.delete_consumer(consumer_id)
    else:
        table.reset_consumer(consumer_id, next_id)
