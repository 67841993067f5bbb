"""A small repository that the browser tests ask about."""

from __future__ import annotations

from pathlib import Path

ORDERS = '''"""Orders of the shop."""

from bookshop.stock import Stock


class Order:
    """One customer's order."""

    def __init__(self, customer, stock):
        self.customer = customer
        self.stock = stock
        self.lines = []

    def add_book(self, isbn, copies=1):
        """Put copies of a book on the order and reserve them in the stock."""
        self.stock.reserve_copies(isbn, copies)
        self.lines.append((isbn, copies))
'''
INVENTORY = "def take_inventory(shelves, scanner):\n    found = []\n"
for n in range(60):
    INVENTORY += f"    with shelves[{n}] as shelf:\n        found.append(scanner.read(shelf))\n"
INVENTORY += "    scanner.hand_in(found)\n"
STOCK_HEAD = '''"""What lies on the shelves."""


class OutOfStockError(Exception):
    """There are fewer copies than were asked for."""


'''
STOCK_TAIL = '''class Stock:
    """Copies of every book, by ISBN."""

    def __init__(self):
        self.copies = {}

    def reserve_copies(self, isbn, copies):
        """Take copies of a book off the shelf for an order.

        Raises OutOfStockError when there are not enough of them.
        """
        left = self.copies.get(isbn, 0)
        if left < copies:
            raise OutOfStockError(isbn)
        self.copies[isbn] = left - copies
        return self.copies[isbn]
'''


def write_bookshop(folder: Path) -> Path:
    """Write the repository; `reserve_copies` lies far down in its file."""
    shelves = "".join(
        f'def shelf_{n}():\n    """Shelf number {n}."""\n    return {n}\n\n\n' for n in range(60)
    )
    files = {
        "README.md": "# Bookshop\n\nSells books, one order at a time.\n",
        "bookshop/__init__.py": "",
        "bookshop/orders.py": ORDERS,
        "bookshop/inventory.py": INVENTORY,
        "bookshop/stock.py": STOCK_HEAD + shelves + STOCK_TAIL,
        "bookshop/<img src=x onerror=window.hacked=1>.py": (
            'def hostile():\n    """<script>window.hacked=1</script> does hostile things."""\n'
        ),
        "tests/test_orders.py": (
            "from bookshop.orders import Order\n\n\ndef test_an_order_reserves_copies(stock):\n"
            "    Order('a', stock).add_book('1')\n    stock.reserve_copies('1', 1)\n"
        ),
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "cover.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\x00binary")
    return folder
