// A page that takes a while to compute, for `deno serve`.
function page() {
  let s = 0;
  for (let i = 0; i < 3000000; i++) s = (s * 31 + i) % 1000003;
  return `${s}`;
}
export default { fetch: () => new Response(page()) };
