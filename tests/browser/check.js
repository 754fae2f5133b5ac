// What is wrong with the page as it stands, one line a fault. Runs in the page, with axe in it;
// the arguments are the width that the page was given and whether only its colours are in question.
const [width, onlyColours, done] = arguments;

const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
const name = (element) => {
  const mark = element.id ? "#" + element.id : element.className ? "." + element.className : "";
  return element.tagName.toLowerCase() + mark + " " + JSON.stringify(element.textContent.trim().slice(0, 40));
};
const isSeen = (element) =>
  element.getClientRects().length > 0 && element.checkVisibility({ visibilityProperty: true, opacityProperty: true });

const overflow = () => {
  if (innerWidth !== width) return ["the window is " + innerWidth + " wide"];
  const over = document.documentElement.scrollWidth - innerWidth;
  if (over <= 0) return [];
  const culprits = Array.from(document.body.querySelectorAll("*"))
    .filter((element) => element.getBoundingClientRect().right > innerWidth)
    .map(name);
  return ["it overflows sideways by " + over + ": " + culprits.slice(0, 5).join("; ")];
};

const smallText = () => {
  const faults = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const parent = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !isSeen(parent)) continue;
    const size = parseFloat(getComputedStyle(parent).fontSize);
    if (size < 12) faults.push("text of " + size + " px: " + name(parent));
  }
  return faults;
};

// A link in a sentence is as high as its line; the guideline exempts it.
const isInSentence = (element) =>
  element.tagName === "A" &&
  getComputedStyle(element).display === "inline" &&
  Array.from(element.parentElement.childNodes).some((node) => node.nodeType === Node.TEXT_NODE && /[\p{L}\p{N}]/u.test(node.data));

// Where it can be hit: a box that belongs to a label is as large as both together.
const extent = (element) => {
  const boxes = [element, ...(element.matches("input[type=radio], input[type=checkbox]") ? element.labels : [])]
    .flatMap((part) => Array.from(part.getClientRects()));
  const right = Math.max(...boxes.map((box) => box.right)), left = Math.min(...boxes.map((box) => box.left));
  const bottom = Math.max(...boxes.map((box) => box.bottom)), top = Math.min(...boxes.map((box) => box.top));
  return [right - left, bottom - top];
};

const smallTargets = () => {
  const targets = document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary");
  return Array.from(targets)
    .filter((element) => isSeen(element) && !isInSentence(element))
    .map((element) => [element, ...extent(element)])
    .filter(([, wide, high]) => wide < 23.9 || high < 23.9)
    .map(([element, wide, high]) => "a target of " + Math.round(wide) + " by " + Math.round(high) + ": " + name(element));
};

const violations = async () => {
  const rules = onlyColours ? { runOnly: { type: "rule", values: ["color-contrast"] } } : {};
  const result = await axe.run(document, { resultTypes: ["violations"], ...rules });
  if (result.passes.length === 0) return ["axe looked at nothing"];
  return result.violations.flatMap((violation) =>
    violation.nodes.map((node) => violation.id + " at " + node.target.join(" ") + ": " + node.failureSummary));
};

const check = async () => {
  await frame();
  await frame();
  return [...overflow(), ...smallText(), ...smallTargets(), ...(await violations())];
};

check().then(done, (error) => done(["the check broke: " + error]));
