# adbench with some libraries, from this checkout: docs/how-to/install.md#with-docker
FROM python:3.13-slim AS build
RUN pip install --no-cache-dir build
COPY . /source
RUN python -m build --wheel --outdir /wheel /source

FROM python:3.13-slim
ARG EXTRAS=plots,compiled,jax,autograd
COPY --from=build /wheel /wheel
COPY constraints.txt /wheel/
RUN pip install --no-cache-dir --constraint /wheel/constraints.txt "$(echo /wheel/*.whl)[$EXTRAS]"
# For any user, who need not exist in the image
ENV HOME=/tmp
WORKDIR /work
ENTRYPOINT ["adbench"]
