// Replaces the figures every two seconds by those of the server, which draws everything.
const lost = document.getElementById("lost");
async function update() {
  try {
    const answer = await fetch("?", { cache: "no-store", signal: AbortSignal.timeout(10000) });
    if (!answer.ok) throw new Error(answer.status);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const open = [...document.querySelectorAll("details")].map((one) => one.open);
    document.getElementById("now").replaceWith(page.getElementById("now"));
    document.querySelectorAll("details").forEach((one, i) => { one.open = Boolean(open[i]); });
    lost.hidden = true;
  } catch {
    lost.hidden = false;
  }
  setTimeout(update, document.hidden ? 10000 : 2000);
}
setTimeout(update, 2000);
