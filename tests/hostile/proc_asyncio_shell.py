# group: process
# input: 1
# expect: exc:PermissionError|violation
# why: an event loop needs a selector, and a shell needs a child
import asyncio
async def main(): return await (await asyncio.create_subprocess_shell('true')).wait()
def f(x): return asyncio.run(main())
