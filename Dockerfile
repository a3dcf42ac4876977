# The catalog service and the demo of docker-compose.yml, from the checkout (docs/guides/whole-system.md).
#
# The digest is that of an index for several processors, as other public repositories pin this tag; it was not looked up by us, for want
# of a registry. `docker buildx imagetools inspect python:3.13-slim` shows the newest one, and that this one exists.
FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b

# The volume of the token takes over the owner of this folder.
RUN useradd --uid 10001 --create-home tablestore && install -d -o tablestore -m 0700 /var/lib/tablestore

# By their hashes, and before the code, which changes more often.
COPY .ci/container.txt /tmp/container.txt
RUN python -m pip install --no-cache-dir --require-hashes --requirement /tmp/container.txt

# Run from its sources: what the package index has of it is the same code.
COPY tablestore /opt/tablestore/tablestore
COPY connectors /opt/tablestore/connectors
COPY examples /opt/tablestore/examples
COPY pyproject.toml README.md CHANGELOG.md LICENSE /opt/tablestore/
COPY docs/metadata.py /opt/tablestore/docs/metadata.py

WORKDIR /opt/tablestore
# Registers the connectors by their entry points.
RUN python -m pip install --no-cache-dir --no-deps --editable .

USER tablestore
ENV PYTHONUNBUFFERED=1
