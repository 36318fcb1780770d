"""From records to what people and scripts read: tables, text formats, pictures, errors."""
