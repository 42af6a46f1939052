# Red Queen in a container, for a user without rights of its own (docs/usage.md, "In a container"):
#
#   docker build -t redqueen .
#   docker run --rm --security-opt seccomp=unconfined --security-opt apparmor=unconfined redqueen doctor

FROM python:3.12-slim
ARG EXTRAS=evals,page,quantise
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir -c constraints.txt ".[${EXTRAS}]" && useradd --create-home redqueen
USER redqueen
WORKDIR /home/redqueen
ENTRYPOINT ["redqueen"]
CMD ["doctor"]
