# The server without torch, in an image that holds Python, transduce-runtime and nothing to build it with.
# From the repository's root:
#   docker build -f deploy/runtime.Dockerfile -t transduce-runtime .
FROM python:3.13-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
RUN python -m venv /opt/transduce
ENV PATH=/opt/transduce/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY constraints.txt setup.py LICENSE ./
COPY src src
COPY packaging packaging
RUN pip wheel --no-deps --wheel-dir dist packaging/runtime
RUN pip install --constraint constraints.txt "$(ls dist/*.whl)[serve,detect]"

FROM python:3.13-slim
COPY --from=build /opt/transduce /opt/transduce
ENV PATH=/opt/transduce/bin:$PATH PYTHONUNBUFFERED=1
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin transduce
USER 10001
WORKDIR /models
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["transduce-runtime", "serve", "--host", "0.0.0.0", "--port", "8000"]
CMD ["/models/model.safetensors"]
