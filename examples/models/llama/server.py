"""A model behind HTTP: ``POST /v1/completions`` and ``GET /v1/models``, as of OpenAI's API."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from examples.models.llama.config import ModelError
from examples.models.llama.decoder import Decoder
from examples.models.llama.generation import Model, Pace, generate
from examples.models.llama.sampling import Sampling

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

_MOST_BYTES = 1 << 20
#: Fields of a request that change what is said, and are not known here; others are left out of account.
_REFUSED = ("stop", "suffix", "logit_bias", "logprobs", "echo")


@dataclass(frozen=True)
class Request:
    """A request for a completion.

    Attributes:
        prompt: The tokens to go on from.
        most: How many tokens are wanted at most.
        sampling: How they are drawn.
        streams: Whether each is sent when it is there.
    """

    prompt: list[int]
    most: int
    sampling: Sampling
    streams: bool

    @classmethod
    def of(cls, fields: object, model: Model) -> Request:
        """Return what the fields of a request say.

        Raises:
            ModelError: They say what there is not.
        """
        if not isinstance(fields, dict):
            raise ModelError("the request must be an object of JSON")
        if refused := [name for name in _REFUSED if fields.get(name) not in (None, False, [], {}, "")]:
            raise ModelError(f"'{refused[0]}' is not supported")
        if fields.get("n") not in (None, 1):
            raise ModelError("n must be 1")
        prompt = fields.get("prompt")
        if not isinstance(prompt, str):
            raise ModelError("prompt must be a text")
        usual = Sampling()
        sampling = Sampling(
            temperature=_number(fields, "temperature", usual.temperature),
            top_k=int(_number(fields, "top_k", usual.top_k)),
            top_p=_number(fields, "top_p", usual.top_p),
            seed=None if fields.get("seed") is None else int(abs(_number(fields, "seed", 0))),
        )
        most = int(_number(fields, "max_tokens", 128))
        if most < 1:
            raise ModelError("max_tokens must be 1 or more")
        tokens = model.tokenizer.encode(prompt)
        if not tokens:
            raise ModelError("prompt must not be empty")
        return cls(tokens, most, sampling, fields.get("stream") is True)


def _number(fields: dict[str, Any], name: str, usual: float) -> float:
    value = fields.get(name)
    if value is None:
        return usual
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e18:
        raise ModelError(f"{name} must be a number")
    return value


class Service:
    """A model that answers one request at a time."""

    def __init__(self, model: Model, log: Callable[[str], None] = print) -> None:
        """Hold a model; ``log`` is told how quickly it answers."""
        self.model, self._log, self._lock = model, log, threading.Lock()
        self._decoder = Decoder(model.config, model.params)

    def texts(self, request: Request, pace: Pace) -> Generator[str]:
        """Yield the text of each token of an answer."""
        with self._lock:
            self._decoder.rewind(0)
            tokens = generate(
                self._decoder, request.prompt, self.model.tokenizer, request.sampling, request.most, pace
            )
            yield from self.model.tokenizer.decode(tokens)
        self._log(str(pace))


class Handler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    protocol_version = "HTTP/1.1"

    def __init__(self, service: Service, *given: Any) -> None:
        """Answer by means of a service; the rest is what `http.server` says."""
        self._service = service
        super().__init__(*given)

    def do_GET(self) -> None:
        """Answer with the name of the model."""
        if self.path != "/v1/models":
            self._refuse(HTTPStatus.NOT_FOUND, f"there is nothing at {self.path}: see /v1/models")
            return
        models = [{"id": self._service.model.name, "object": "model", "owned_by": "mind_mlir"}]
        self._send(HTTPStatus.OK, {"object": "list", "data": models})

    def do_POST(self) -> None:
        """Answer with a completion."""
        if self.path != "/v1/completions":
            self.close_connection = True  # what was sent along is not read
            self._refuse(HTTPStatus.NOT_FOUND, f"there is nothing at {self.path}: see /v1/completions")
            return
        try:
            request = Request.of(self._fields(), self._service.model)
            pace = Pace()
            texts = self._service.texts(request, pace)
            # What is wrong with a request shows before its first token.
            first = next(texts, "")
        except ModelError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
            return
        if request.streams:
            self._stream(first, texts, pace)
        else:
            text = first + "".join(texts)
            self._send(HTTPStatus.OK, self._completion(text, _reason(pace)) | _usage(pace))

    def _fields(self) -> object:
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or int(length) > _MOST_BYTES:
            self.close_connection = True
            raise ModelError(f"the request must say its length, at most {_MOST_BYTES} bytes")
        try:
            return json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError) as error:
            raise ModelError(f"the request is not JSON: {error}") from None

    def _stream(self, first: str, texts: Generator[str], pace: Pace) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            self._event(self._completion(first, None))
            for text in texts:
                self._event(self._completion(text, None))
            self._event(self._completion("", _reason(pace)))
            self.wfile.write(b"data: [DONE]\n\n")
        except ConnectionError:
            pass  # who asked has gone: the answer ends here
        finally:
            texts.close()  # it holds the model until then

    def _event(self, fields: dict[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps(fields)}\n\n".encode())
        self.wfile.flush()

    def _completion(self, text: str, reason: str | None) -> dict[str, Any]:
        return {
            "object": "text_completion",
            "created": int(time.time()),
            "model": self._service.model.name,
            "choices": [{"index": 0, "text": text, "logprobs": None, "finish_reason": reason}],
        }

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self._send(status, {"error": {"message": message, "type": "invalid_request_error"}})

    def _send(self, status: HTTPStatus, fields: dict[str, Any]) -> None:
        data = json.dumps(fields).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the name that http.server gives it
        """Say nothing: the service tells how quickly it answers."""


def serve(service: Service, host: str, port: int) -> ThreadingHTTPServer:
    """Return a server that answers on a port, 0 for a free one, once its ``serve_forever`` is called."""
    server = ThreadingHTTPServer((host, port), partial(Handler, service))
    server.daemon_threads = True
    return server


def _reason(pace: Pace) -> str:
    return "stop" if pace.ended else "length"


def _usage(pace: Pace) -> dict[str, Any]:
    total = pace.read + pace.written
    counts = {"prompt_tokens": pace.read, "completion_tokens": pace.written, "total_tokens": total}
    return {"usage": counts}
