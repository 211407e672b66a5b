// A form is sent once. With the second tap of a double tap the browser drops the reply to the
// first, and with it the cookie for which an invitation was used up.

let sent = false;
addEventListener("submit", (event) => {
  if (event.defaultPrevented) return;
  if (sent) event.preventDefault();
  sent = true;
});
addEventListener("pageshow", () => { sent = false; });  // they went back to it
