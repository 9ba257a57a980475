"""A page that takes a while to compute, for servers of ASGI (`app`) and of WSGI (`wsgi`)."""


def page():
    s = 0
    for i in range(30000):
        s += i * i % 7
    return b"ok"


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    body = page()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": body})


def wsgi(_, start):
    body = page()
    start("200 OK", [("Content-Length", "2")])
    return [body]
